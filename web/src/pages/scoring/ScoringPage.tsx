// Every scoring of the project: those the server did or does, and results that `evalstudio score -o` wrote.
import { Code, Progress, Table, Text } from '@mantine/core';
import { IconListCheck, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Schemas } from '../../api/client';
import { resultsFilesQuery, scoringsQuery } from '../../api/scoring';
import { Listing } from '../../editing/Listing';
import { LinkButton, PageLink } from '../../parts/links';
import { compact, plural } from '../../parts/numbers';
import { RelativeTime } from '../../parts/RelativeTime';
import { ScoringStatus } from './ScoringStatus';

type Scoring = Schemas['Scoring'];
type File = Schemas['FileEntry'];
type Entry = { id: string; name: string; at: string; words: string } & (
  | { scoring: Scoring }
  | { file: File }
);

export default function ScoringPage() {
  const scorings = useQuery(scoringsQuery);
  const files = useQuery(resultsFilesQuery);
  const entries = useMemo(
    () => scorings.data && files.data && entriesOf(scorings.data, files.data),
    [scorings.data, files.data],
  );
  return (
    <Listing
      title="Scoring"
      noun="scoring"
      none="Nothing scored yet"
      add={
        <LinkButton to="/scoring/new" leftSection={<IconPlus size={16} aria-hidden />}>
          Score a dataset
        </LinkButton>
      }
      icon={IconListCheck}
      why={
        <>
          Score what an agent already said: a log, an export, a dataset. Results of the command line open here
          too: <Code>evalstudio score data.jsonl -c plan.yaml -o results.jsonl</Code> in the project folder.
        </>
      }
      query={{
        data: entries,
        error: scorings.error ?? files.error,
        isPending: scorings.isPending || files.isPending,
        refetch: () => Promise.all([scorings.refetch(), files.refetch()]),
      }}
      words={(entry) => entry.words}
      narrowest={320}
      columns={[
        'Dataset or results',
        { head: 'Plan', width: '22%', visibleFrom: 'sm' },
        { head: 'Result', width: 130 },
        { head: 'Size', width: 110, number: true, visibleFrom: 'sm' },
        { head: 'When', width: 130 },
      ]}
      row={(entry) => (
        <>
          {'scoring' in entry ? <OfServer scoring={entry.scoring} /> : <OfFile file={entry.file} />}
          <Table.Td>
            <RelativeTime at={entry.at} />
          </Table.Td>
        </>
      )}
    />
  );
}

/** Results of the server's own scorings are told with what was scored; the others by their file alone. */
function entriesOf(scorings: Scoring[], files: File[]): Entry[] {
  const own = new Set(scorings.map((one) => one.results));
  const entries: Entry[] = scorings.map((scoring) => ({
    id: scoring.id,
    name: scoring.dataset,
    at: scoring.startedAt,
    words: `${scoring.plan} ${scoring.status}`,
    scoring,
  }));
  for (const file of files) {
    if (own.has(file.path)) continue;
    entries.push({ id: file.path, name: file.path, at: file.writtenAt, words: '', file });
  }
  return entries.sort((one, other) => other.at.localeCompare(one.at));
}

function OfServer({ scoring }: { scoring: Scoring }) {
  return (
    <>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        <PageLink to="/scoring/jobs/$scoringId" params={{ scoringId: scoring.id }} fw={500}>
          {scoring.dataset}
        </PageLink>
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ overflowWrap: 'anywhere' }}>
        {scoring.planCopy ? 'written here' : scoring.plan}
      </Table.Td>
      <Table.Td>
        <ScoringStatus scoring={scoring} />
        {scoring.status === 'running' && (
          <Progress
            value={100 * scoring.share}
            size="xs"
            mt={6}
            w={90}
            aria-label={`Progress of ${scoring.dataset}`}
          />
        )}
      </Table.Td>
      <Table.Td ta="right" visibleFrom="sm">
        {plural(scoring.records, 'record')}
      </Table.Td>
    </>
  );
}

function OfFile({ file }: { file: File }) {
  return (
    <>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        <PageLink to="/scoring/results" search={{ path: file.path }} fw={500}>
          {file.path}
        </PageLink>
      </Table.Td>
      <Table.Td visibleFrom="sm">–</Table.Td>
      <Table.Td>
        <Text size="sm" c="dimmed">
          Results file
        </Text>
      </Table.Td>
      <Table.Td ta="right" visibleFrom="sm">
        {compact(file.bytes)}B
      </Table.Td>
    </>
  );
}
