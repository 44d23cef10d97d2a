// Rows in the order that the address names.
import { lazily } from '../numbers';
import type { Run, RunColumn } from './columns';

const names = lazily(() => new Intl.Collator('en', { numeric: true, sensitivity: 'base' }));

/** By one column, `-` before its name for the largest first; what has no value comes last either way. */
export function sorted(runs: Run[], columns: RunColumn[], sort?: string): Run[] {
  const order = columns.find(({ id }) => id === sort?.replace(/^-/, ''))?.order;
  if (!sort || !order) return runs;
  const direction = sort.startsWith('-') ? -1 : 1;
  const keyed = runs.map((run) => ({ run, key: order(run) ?? null }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    return direction * compared(a.key, b.key);
  });
  return keyed.map(({ run }) => run);
}

function compared(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return names().compare(String(a), String(b));
}

/** The next of: not sorted by this column, the smallest first, the largest first. */
export function nextSort(column: string, sort?: string): string | undefined {
  if (sort === column) return `-${column}`;
  return sort === `-${column}` ? undefined : column;
}
