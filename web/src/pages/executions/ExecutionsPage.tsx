// All executions, newest first; more are read when asked for.
import { Button, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconPlayerPlay } from '@tabler/icons-react';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { client, dataOf } from '../../api/client';
import { evalsQuery } from '../../api/definitions';
import { Listing } from '../../editing/Listing';
import { ExecutionCells, executionColumns } from '../../parts/ExecutionsTable';
import { LinkButton } from '../../parts/links';
import { useSearchParam } from '../../parts/useSearchParam';

const TYPING_MS = 300;

export default function ExecutionsPage() {
  const evals = useQuery(evalsQuery);
  const [chosen, choose] = useSearchParam('eval');
  const [text, setText] = useSearchParam('text');
  const [typed] = useDebouncedValue(text.trim() || undefined, TYPING_MS);
  const evalId = evals.data?.find((one) => one.name === chosen)?.id;
  const executions = useInfiniteQuery({
    queryKey: ['executions', 'list', 'all', evalId, typed],
    enabled: !chosen || !evals.isPending,
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }) =>
      dataOf(
        client.GET('/api/executions', { params: { query: { cursor, evalId, text: typed, limit: 50 } } }),
      ),
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
  const { data, error, isPending, refetch } = executions;
  const all = useMemo(
    () =>
      data?.pages.flatMap((page) =>
        page.items.map((one) => ({ ...one, name: one.evalName ?? 'Single run' })),
      ),
    [data],
  );
  return (
    <Listing
      title="Executions"
      noun="execution"
      start={<LinkButton to="/evals">Go to the evals</LinkButton>}
      icon={IconPlayerPlay}
      why="An execution is one run of an eval. Open an eval and press Run."
      query={{ data: all, error, isPending, refetch }}
      search={[text, setText]}
      narrowed={chosen !== ''}
      filters={
        <Select
          aria-label="Eval"
          placeholder="All evals"
          clearable
          searchable
          w={{ base: '100%', xs: 240 }}
          data={(evals.data ?? []).map((one) => one.name)}
          value={chosen || null}
          onChange={(name) => choose(name ?? '')}
        />
      }
      narrowest={340}
      columns={executionColumns(false)}
      row={(execution) => <ExecutionCells execution={execution} />}
      below={
        executions.hasNextPage && (
          <Button
            variant="default"
            mt="sm"
            loading={executions.isFetchingNextPage}
            onClick={() => void executions.fetchNextPage()}
          >
            Show older ones
          </Button>
        )
      }
    />
  );
}
