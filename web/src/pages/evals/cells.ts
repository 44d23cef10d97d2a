// A cell of the matrix in one word and in full.
import type { Schemas } from '../../api/client';
import type { Standing } from '../../parts/outcome';

type Counts = Schemas['Counts'];

/** A failure weighs more than an error, an error more than what is still to come, that more than a pass. */
export function cellStanding(counts: Counts): Standing {
  if (counts.failed > 0) return 'fail';
  if (counts.errored > 0) return 'error';
  if (counts.running > 0) return 'running';
  if (counts.queued > 0) return 'queued';
  if (counts.cancelled > 0 && counts.passed === 0) return 'cancelled';
  return counts.passed > counts.unasserted ? 'pass' : 'unasserted';
}

export function cellWords(counts: Counts): string {
  const parts: [number, string][] = [
    [counts.passed, 'passed'],
    [counts.failed, 'failed'],
    [counts.errored, 'errored'],
    [counts.cancelled, 'cancelled'],
    [counts.queued + counts.running, 'to come'],
  ];
  const told = parts.filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`);
  return told.join(', ') || 'no runs';
}
