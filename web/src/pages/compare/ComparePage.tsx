// Two executions side by side: better or worse, how sure that is, what moved, and why.
import { Stack } from '@mantine/core';
import { IconArrowsDiff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { compareQuery } from '../../api/figures';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageTitle } from '../../parts/PageTitle';
import type { CompareSearch } from '../../router';
import { Measures } from './Measures';
import { Pickers } from './Pickers';
import { Subjects } from './Subjects';
import { Verdict } from './Verdict';

const route = getRouteApi('/compare');

export default function ComparePage() {
  const search = route.useSearch();
  return (
    <>
      <PageTitle title="Compare" />
      {ready(search) ? <Compared search={search} /> : <Choose search={search} />}
    </>
  );
}

function ready(search: CompareSearch): search is CompareSearch & { base: string; candidate: string } {
  const connectors = Boolean(search.baseConnector && search.candidateConnector);
  return Boolean(search.base && search.candidate) && (search.base !== search.candidate || connectors);
}

function Choose({ search }: { search: CompareSearch }) {
  const same = search.base !== undefined && search.base === search.candidate;
  return (
    <>
      <Pickers />
      <EmptyState
        icon={IconArrowsDiff}
        title={same ? 'Choose two connectors of this execution' : 'Choose two executions'}
      >
        Base is what it was, candidate is what it is now. Every scenario is compared with itself, and a drop
        is told from chance. Choose the same execution twice to compare two of its connectors.
      </EmptyState>
    </>
  );
}

function Compared({ search }: { search: CompareSearch & { base: string; candidate: string } }) {
  const { tab, row, ...which } = search;
  const comparison = useQuery(compareQuery(which));
  if (comparison.error) {
    return (
      <>
        <Pickers />
        <ErrorState error={comparison.error} onRetry={() => void comparison.refetch()} />
      </>
    );
  }
  if (!comparison.data) return <Loading rows={10} />;
  const { base, candidate } = comparison.data;
  return (
    <>
      <Pickers sides={{ base: base.id, candidate: candidate.id }} />
      <Stack gap="md">
        {!row && <Verdict comparison={comparison.data} />}
        <Subjects comparison={comparison.data} />
        {!row && <Measures measures={comparison.data.measures} />}
      </Stack>
    </>
  );
}
