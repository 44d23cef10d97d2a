// A rate of runs that are still coming in: the same Wilson interval as the server's.
import type { Schemas } from '../../api/client';

const Z = 1.959963984540054;

export function rateOf(passed: number, others: number): Schemas['RateJson'] {
  const of = passed + others;
  if (of === 0) return { passed, of, rate: null, low: 0, high: 1 };
  const rate = passed / of;
  const base = 1 + (Z * Z) / of;
  const middle = (rate + (Z * Z) / (2 * of)) / base;
  const half = (Z / base) * Math.sqrt((rate * (1 - rate)) / of + (Z * Z) / (4 * of * of));
  return {
    passed,
    of,
    rate,
    low: passed === 0 ? 0 : Math.max(0, middle - half),
    high: others === 0 ? 1 : Math.min(1, middle + half),
  };
}
