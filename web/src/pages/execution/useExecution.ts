// An execution with its runs and its figures, live.
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { executionSummaryQuery } from '../../api/figures';
import { executionQuery } from '../../api/runs';
import { executionRunsQuery, subjectKey } from './runs';

export function useExecution(id: string) {
  const execution = useQuery(executionQuery(id));
  const runs = useQuery(executionRunsQuery(id));
  const summary = useQuery(executionSummaryQuery(id));

  const subjects = summary.data?.flaky;
  const flaky = useMemo(() => new Set(subjects?.map(({ subject }) => subjectKey(subject))), [subjects]);
  return { execution, runs, summary, flaky };
}
