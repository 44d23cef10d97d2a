// Where a run or an evaluator result stands, in one word. Shown by OutcomeBadge, always with an icon.
import type { Schemas } from '../api/client';

export type Standing =
  | 'pass'
  | 'fail'
  | 'error'
  | 'queued'
  | 'running'
  | 'cancelled'
  | 'pending'
  | 'skipped'
  | 'unasserted';

const FAULTS: Record<string, string> = { simulator: 'simulated user' };

/** Whose fault an error was, as people say it. */
export function faultText(fault: string): string {
  return FAULTS[fault] ?? fault;
}

type Run = Pick<Schemas['RunSummary'], 'status' | 'result'>;

export function standingOf(run: Run): Standing {
  if (run.status === 'queued' || run.status === 'running' || run.status === 'cancelled') return run.status;
  return run.result?.outcome ?? 'error';
}

/** An execution in one word: its status while it has no result, then the worst outcome of its runs. */
export function standingOfExecution(execution: Pick<Schemas['Execution'], 'status' | 'counts'>): Standing {
  return execution.status === 'completed' ? execution.counts.standing : execution.status;
}
