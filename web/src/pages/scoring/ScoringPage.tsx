// Every scoring of the project: those the server did or does, and results that `evalstudio score -o` wrote.
import { Code, Group, Progress, Table, Text, TextInput } from '@mantine/core';
import { IconListCheck, IconPlus, IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { resultsFilesQuery, scoringsQuery } from '../../api/scoring';
import { matches } from '../../editing/Listing';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { LinkButton, PageLink } from '../../parts/links';
import { compact, plural } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { RelativeTime } from '../../parts/RelativeTime';
import { useSearchParam } from '../../parts/useSearchParam';
import { ScoringStatus } from './ScoringStatus';

type Scoring = Schemas['Scoring'];
type File = Schemas['FileEntry'];
type Entry = { key: string; at: string; words: string } & ({ scoring: Scoring } | { file: File });

export default function ScoringPage() {
  const scorings = useQuery(scoringsQuery);
  const files = useQuery(resultsFilesQuery);
  const [search, setSearch] = useSearchParam('text');
  const error = scorings.error ?? files.error;
  const entries = scorings.data && files.data && entriesOf(scorings.data, files.data);
  const shown = entries?.filter((one) => matches(search, one.words));
  const start = (
    <LinkButton to="/scoring/new" leftSection={<IconPlus size={16} />}>
      Score a dataset
    </LinkButton>
  );
  return (
    <>
      <PageTitle title="Scoring" actions={entries?.length ? start : undefined} />
      {error && (
        <ErrorState
          error={error}
          onRetry={() => {
            void scorings.refetch();
            void files.refetch();
          }}
        />
      )}
      {!error && !entries && <Loading rows={8} />}
      {entries?.length === 0 && (
        <EmptyState icon={IconListCheck} title="Nothing scored yet" actions={start}>
          Score what an agent already said: a log, an export, a dataset. Results of the command line open here
          too: <Code>evalstudio score data.jsonl -c plan.yaml -o results.jsonl</Code> in the project folder.
        </EmptyState>
      )}
      {shown && entries && entries.length > 0 && (
        <>
          <Group mb="sm">
            <TextInput
              aria-label="Search scorings"
              placeholder="Search"
              leftSection={<IconSearch size={16} />}
              value={search}
              onChange={(event) => setSearch(event.currentTarget.value)}
              w={{ base: '100%', xs: 280 }}
            />
          </Group>
          <Rows entries={shown} />
          {shown.length === 0 && (
            <Text c="dimmed" mt="md">
              Nothing matches "{search}".
            </Text>
          )}
        </>
      )}
    </>
  );
}

/** Results of the server's own scorings are told with what was scored; the others by their file alone. */
function entriesOf(scorings: Scoring[], files: File[]): Entry[] {
  const own = new Set(scorings.map((one) => one.results));
  const entries: Entry[] = scorings.map((scoring) => ({
    key: scoring.id,
    at: scoring.startedAt,
    words: `${scoring.dataset} ${scoring.plan} ${scoring.status}`,
    scoring,
  }));
  for (const file of files) {
    if (!own.has(file.path)) entries.push({ key: file.path, at: file.writtenAt, words: file.path, file });
  }
  return entries.sort((one, other) => other.at.localeCompare(one.at));
}

function Rows({ entries }: { entries: Entry[] }) {
  return (
    <Table.ScrollContainer minWidth={320} type="native" tabIndex={0} aria-label="Scorings">
      <Table aria-label="Scorings">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Dataset or results</Table.Th>
            <Table.Th visibleFrom="sm">Plan</Table.Th>
            <Table.Th>Result</Table.Th>
            <Table.Th ta="right" visibleFrom="sm">
              Size
            </Table.Th>
            <Table.Th>When</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {entries.map((entry) => (
            <Table.Tr key={entry.key}>
              {'scoring' in entry ? <OfServer scoring={entry.scoring} /> : <OfFile file={entry.file} />}
              <Table.Td>
                <RelativeTime at={entry.at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
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
