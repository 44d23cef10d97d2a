// An execution with its runs, live.
import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { type LiveEvent, useEvents } from '../../api/events';
import { patchedAll } from '../../api/live';
import { executionQuery, queryClient } from '../../api/queries';
import { countsOf, executionRunsQuery, flakyThings } from './runs';

const OVER = new Set(['execution.completed', 'execution.cancelled']);

export function useExecution(id: string) {
  const execution = useQuery(executionQuery(id));
  const runs = useQuery(executionRunsQuery(id));

  const listen = useCallback(
    (events: LiveEvent[]) => {
      const own = events.filter((event) => event.executionId === id);
      if (own.length === 0) return;
      const { queryKey } = executionRunsQuery(id);
      queryClient.setQueryData(queryKey, (before) => before && patchedAll(before, own));
      // Events tell the outcome; tokens and errors in full are read once at the end.
      if (own.some((event) => OVER.has(event.kind))) void queryClient.invalidateQueries({ queryKey });
    },
    [id],
  );
  useEvents(listen);

  const counts = useMemo(
    () => (runs.data ? countsOf(runs.data) : execution.data?.counts),
    [runs.data, execution.data],
  );
  const flaky = useMemo(() => flakyThings(runs.data ?? []), [runs.data]);
  return { execution, runs, counts, flaky };
}
