// An execution with its runs and its figures, live.
import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { type LiveEvent, useEvents } from '../../api/events';
import { executionQuery, executionSummaryQuery, queryClient } from '../../api/queries';
import { patchedAll } from '../../api/updates';
import { executionRunsQuery, subjectKey } from './runs';

const OVER = new Set(['execution.completed', 'execution.cancelled']);

export function useExecution(id: string) {
  const execution = useQuery(executionQuery(id));
  const runs = useQuery(executionRunsQuery(id));
  const summary = useQuery(executionSummaryQuery(id));

  const listen = useCallback(
    (events: LiveEvent[]) => {
      const own = events.filter((event) => event.executionId === id);
      if (own.length === 0) return;
      const { queryKey } = executionRunsQuery(id);
      queryClient.setQueryData(queryKey, (before) => before && patchedAll(before, own));
      // Events tell the outcome; errors in full are read once at the end.
      if (own.some((event) => OVER.has(event.kind))) void queryClient.invalidateQueries({ queryKey });
    },
    [id],
  );
  useEvents(listen);

  const subjects = summary.data?.flaky;
  const flaky = useMemo(() => new Set(subjects?.map(({ subject }) => subjectKey(subject))), [subjects]);
  return { execution, runs, summary, flaky };
}
