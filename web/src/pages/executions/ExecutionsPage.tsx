// All executions, newest first; more are read when asked for.
import { Button, Select } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { client, dataOf } from '../../api/client';
import { evalsQuery } from '../../api/queries';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { ExecutionsTable } from '../../parts/ExecutionsTable';
import { Loading } from '../../parts/Loading';
import { LinkButton } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';
import { useSearchParam } from '../../parts/useSearchParam';

export default function ExecutionsPage() {
  const evals = useQuery(evalsQuery);
  const [chosen, choose] = useSearchParam('eval');
  const evalId = evals.data?.find((one) => one.name === chosen)?.id;
  const executions = useInfiniteQuery({
    queryKey: ['executions', 'list', 'all', evalId],
    enabled: !chosen || !evals.isPending,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }) =>
      dataOf(client.GET('/api/executions', { params: { query: { cursor, evalId, limit: 50 } } })),
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
  const all = executions.data?.pages.flatMap((page) => page.items);
  return (
    <>
      <PageTitle title="Executions" />
      <Select
        aria-label="Eval"
        placeholder="All evals"
        clearable
        searchable
        w={{ base: '100%', xs: 280 }}
        mb="md"
        data={(evals.data ?? []).map((one) => one.name)}
        value={chosen || null}
        onChange={(name) => choose(name ?? '')}
      />
      {executions.error && <ErrorState error={executions.error} onRetry={() => void executions.refetch()} />}
      {executions.isPending && <Loading />}
      {all?.length === 0 && (
        <EmptyState
          icon={IconPlayerPlay}
          title="No executions yet"
          actions={<LinkButton to="/evals">Go to the evals</LinkButton>}
        >
          An execution is one run of an eval. Open an eval and press Run.
        </EmptyState>
      )}
      {all && all.length > 0 && <ExecutionsTable executions={all} />}
      {executions.hasNextPage && (
        <Button
          variant="default"
          mt="sm"
          loading={executions.isFetchingNextPage}
          onClick={() => void executions.fetchNextPage()}
        >
          Show older ones
        </Button>
      )}
    </>
  );
}
