// What `evalstudio score -o` wrote: criteria with intervals and histograms, records with reasons, two compared.
import { Code, Group, Select, Stack, Text } from '@mantine/core';
import { IconListCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { comparedFilesQuery, resultsFilesQuery, scoredFileQuery } from '../../api/queries';
import { Block } from '../../parts/Block';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { ago } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { useSearchParam } from '../../parts/useSearchParam';
import { Measures } from '../compare/Measures';
import { CriteriaTable } from './CriteriaTable';
import { RecordsTable } from './RecordsTable';

export default function ScoringPage() {
  const files = useQuery(resultsFilesQuery);
  return (
    <>
      <PageTitle title="Scoring" />
      {files.error && <ErrorState error={files.error} onRetry={() => void files.refetch()} />}
      {files.isPending && <Loading rows={8} />}
      {files.data?.length === 0 && (
        <EmptyState icon={IconListCheck} title="No results yet">
          Recorded responses are scored at the command line, and their results open here:{' '}
          <Code>evalstudio score data.jsonl -c plan.yaml -o results.jsonl</Code> in the project folder.
        </EmptyState>
      )}
      {files.data && files.data.length > 0 && <Results files={files.data} />}
    </>
  );
}

function Results({ files }: { files: Schemas['ResultsFileEntry'][] }) {
  const [path, setPath] = useSearchParam('path');
  const [base, setBase] = useSearchParam('base');
  const [outcome, setOutcome] = useSearchParam('outcome');
  const shown = path || (files[0]?.path ?? '');
  const data = files.map((one) => ({ value: one.path, label: `${one.path} (${ago(one.writtenAt)})` }));
  return (
    <Stack gap="md">
      <Group gap="sm">
        <Select
          label="Results file"
          data={data}
          value={shown}
          searchable
          allowDeselect={false}
          onChange={(value) => setPath(value ?? '')}
          w={{ base: '100%', xs: 330 }}
        />
        <Select
          label="Compared with"
          data={data.filter((one) => one.value !== shown)}
          value={base || null}
          placeholder="Nothing"
          clearable
          onChange={(value) => setBase(value ?? '')}
          w={{ base: '100%', xs: 330 }}
        />
      </Group>
      <OneFile path={shown} outcome={outcome} onOutcome={setOutcome} />
      {base && <Comparison base={base} candidate={shown} />}
    </Stack>
  );
}

type Outcome = Schemas['ScoredRecord']['outcome'];
type OneFileProps = { path: string; outcome: string; onOutcome: (outcome: string) => void };

function OneFile({ path, outcome, onOutcome }: OneFileProps) {
  const file = useQuery(scoredFileQuery({ path, outcome: (outcome || undefined) as Outcome | undefined }));
  if (file.error) return <ErrorState error={file.error} onRetry={() => void file.refetch()} />;
  if (!file.data) return <Loading rows={8} />;
  return (
    <>
      <CriteriaTable summary={file.data.summary} />
      <RecordsTable file={file.data} outcome={outcome} onOutcome={onOutcome} />
    </>
  );
}

function Comparison({ base, candidate }: { base: string; candidate: string }) {
  const comparison = useQuery(comparedFilesQuery(base, candidate));
  if (comparison.error) return <ErrorState error={comparison.error} />;
  if (!comparison.data) return <Loading rows={4} />;
  const { counts, reasons, notes, measures } = comparison.data;
  const moved = Object.entries(counts).filter(([, number]) => number > 0);
  return (
    <>
      <Block title={`Since ${base}`}>
        <Text size="sm">{moved.map(([category, number]) => `${number} ${category}`).join(' · ')}</Text>
        {[...reasons, ...notes].map((text) => (
          <Text key={text} size="sm" c="dimmed">
            {text}
          </Text>
        ))}
      </Block>
      <Measures measures={measures} />
    </>
  );
}
