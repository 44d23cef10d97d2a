// All runs of the project: narrowed by what they are and by what they hold, newest first.
import { Button, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo } from 'react';
import { client, dataOf } from '../../api/client';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { count, plural } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import {
  CONNECTOR,
  LATENCY,
  nameColumn,
  REASON,
  RESULT,
  SCORE,
  STARTED,
  TURNS,
} from '../../parts/runs/columns';
import { RunsTable } from '../../parts/runs/RunsTable';
import { Filters } from './Filters';
import { queryOf, type RunsFilter } from './filter';
import { SavedViews } from './SavedViews';

const route = getRouteApi('/runs');
const PAGE = 200;
const COLUMNS = [RESULT, nameColumn(), CONNECTOR, STARTED, TURNS, LATENCY, SCORE, REASON];
/** A page may be empty although more follow; after this many in a row the reader is asked. */
const MOST_EMPTY = 10;

export default function RunsPage() {
  const filter = route.useSearch();
  const navigate = useNavigate({ from: '/runs' });
  const query = useMemo(() => queryOf(filter), [filter]);
  const runs = useInfiniteQuery({
    queryKey: ['runs', 'list', 'all', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }) =>
      dataOf(client.GET('/api/runs', { params: { query: { ...query, cursor, limit: PAGE } } })),
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
  const items = useMemo(() => runs.data?.pages.flatMap((page) => page.items) ?? [], [runs.data]);
  const empty = trailingEmpty(runs.data?.pages ?? []);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = runs;
  useEffect(() => {
    const wanting = items.length < PAGE / 4 && empty < MOST_EMPTY;
    if (hasNextPage && !isFetchingNextPage && wanting) void fetchNextPage();
  }, [items.length, empty, hasNextPage, isFetchingNextPage, fetchNextPage]);

  const change = (next: RunsFilter) => void navigate({ search: next, replace: true, resetScroll: false });
  return (
    <>
      <PageTitle title="Runs" actions={<SavedViews />} />
      <Filters filter={filter} onChange={change} />
      {runs.error && <ErrorState error={runs.error} onRetry={() => void runs.refetch()} />}
      {runs.isPending ? (
        <Loading rows={10} />
      ) : (
        <>
          <Text size="sm" c="dimmed" mb={6} role="status">
            {hasNextPage
              ? `The newest ${count(items.length)}; more follow as you scroll`
              : items.length === 0
                ? 'No run matches'
                : plural(items.length, 'run')}
          </Text>
          <RunsTable
            runs={items}
            columns={COLUMNS}
            onEnd={() => {
              if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
            }}
          />
          {hasNextPage && empty >= MOST_EMPTY && (
            <Button
              variant="default"
              mt="sm"
              loading={isFetchingNextPage}
              onClick={() => void fetchNextPage()}
            >
              Look further back
            </Button>
          )}
        </>
      )}
    </>
  );
}

function trailingEmpty(pages: { items: unknown[] }[]): number {
  const last = pages.findLastIndex((page) => page.items.length > 0);
  return pages.length - 1 - last;
}
