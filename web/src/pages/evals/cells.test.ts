import { expect, it } from 'vitest';
import { cellStanding, cellWords } from './cells';

const none = {
  total: 0,
  queued: 0,
  running: 0,
  passed: 0,
  failed: 0,
  errored: 0,
  cancelled: 0,
  unasserted: 0,
};

it.each([
  [{ passed: 2, failed: 1, errored: 1 }, 'fail'],
  [{ passed: 2, errored: 1 }, 'error'],
  [{ passed: 2, queued: 1 }, 'queued'],
  [{ passed: 2 }, 'pass'],
  [{ passed: 1, unasserted: 1 }, 'unasserted'],
  [{ cancelled: 1 }, 'cancelled'],
])('%o is %s', (counts, standing) => {
  expect(cellStanding({ ...none, ...counts })).toBe(standing);
});

it('a cell says what it counts', () => {
  expect(cellWords({ ...none, passed: 2, errored: 1, running: 1 })).toBe('2 passed, 1 errored, 1 to come');
  expect(cellWords(none)).toBe('no runs');
});
