// All executions, newest first; more are read when asked for.
import { Button } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { client, dataOf } from '../../api/client';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { ExecutionsTable } from '../../parts/ExecutionsTable';
import { Loading } from '../../parts/Loading';
import { LinkButton } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';

export default function ExecutionsPage() {
  const executions = useInfiniteQuery({
    queryKey: ['executions', 'list', 'all'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }) =>
      dataOf(client.GET('/api/executions', { params: { query: { cursor, limit: 50 } } })),
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
  const all = executions.data?.pages.flatMap((page) => page.items);
  return (
    <>
      <PageTitle title="Executions" />
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
