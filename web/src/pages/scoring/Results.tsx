// What a results file comes to: criteria with intervals and histograms, then its records with the reasons.
import { Group, Select, Stack } from '@mantine/core';
import { IconArrowsDiff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { resultsFilesQuery, scoredFileQuery } from '../../api/scoring';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { LinkButton } from '../../parts/links';
import { ago } from '../../parts/numbers';
import { resultsName } from '../../parts/resultsName';
import { CriteriaTable } from './CriteriaTable';
import { RecordsTable } from './RecordsTable';

type Outcome = Schemas['ScoredRecord']['outcome'];
type Props = { path: string; outcome: string; onOutcome: (outcome: string) => void };

export function Results({ path, outcome, onOutcome }: Props) {
  const query = scoredFileQuery({ path, outcome: (outcome || undefined) as Outcome | undefined });
  const file = useQuery({ ...query, placeholderData: (before) => before });
  if (file.error) return <ErrorState error={file.error} onRetry={() => void file.refetch()} />;
  if (!file.data) return <Loading rows={8} />;
  return (
    <Stack gap="md">
      <CriteriaTable summary={file.data.summary} />
      <RecordsTable file={file.data} outcome={outcome} onOutcome={onOutcome} />
    </Stack>
  );
}

/** Chooses another results file to compare with; it is the base, this one the candidate. */
export function CompareWith({ path }: { path: string }) {
  const files = useQuery(resultsFilesQuery);
  const [base, setBase] = useState<string | null>(null);
  const others = (files.data ?? []).filter((one) => one.path !== path);
  if (others.length === 0) return null;
  return (
    <Group gap="xs" align="flex-end">
      <Select
        aria-label="Results to compare with"
        placeholder="Compare with"
        data={others.map((one) => ({
          value: one.path,
          label: `${resultsName(one.path)} (${ago(one.writtenAt)})`,
        }))}
        value={base}
        onChange={setBase}
        searchable
        nothingFoundMessage="Nothing matches"
        w={{ base: 220, xs: 300 }}
      />
      <LinkButton
        to="/compare"
        search={{ base: base ?? undefined, candidate: path }}
        variant="default"
        leftSection={<IconArrowsDiff size={16} aria-hidden />}
        disabled={!base}
      >
        Compare
      </LinkButton>
    </Group>
  );
}
