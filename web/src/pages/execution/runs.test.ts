import { expect, it } from 'vitest';
import { rateOf } from './rates';
import { chosen, countsOf, flakyThings, type Run } from './runs';

function run(id: string, outcome: 'pass' | 'fail' | 'error' | null, more: Partial<Run> = {}): Run {
  const result = outcome && {
    success: outcome === 'pass',
    outcome,
    fault: null,
    score: null,
    overallScore: null,
    reason: outcome,
    asserted: true,
  };
  return {
    id,
    scenarioId: 's1',
    scenarioName: 'Books a table',
    caseName: null,
    personaId: null,
    personaName: null,
    connectorId: 'c1',
    connectorName: 'Agent',
    status: outcome === null ? 'queued' : outcome === 'error' ? 'error' : 'completed',
    result,
    error: null,
    ...more,
  } as Run;
}

const runs = [
  run('a', 'pass'),
  run('b', 'fail'),
  run('c', 'pass', { scenarioId: 's2', scenarioName: 'Cancels' }),
  run('d', 'error', { scenarioId: 's3', scenarioName: 'Breaks' }),
  run('e', null),
];

it('what passed once and failed once is flaky', () => {
  const flaky = flakyThings(runs);
  expect(chosen(runs, { show: 'flaky' }, flaky).map((one) => one.id)).toEqual(['a', 'b', 'e']);
  expect(flakyThings([run('x', 'fail'), run('y', 'error')]).size).toBe(0);
});

it('runs are chosen by outcome, words and scenario', () => {
  const ids = (wanted: Parameters<typeof chosen>[1]) => chosen(runs, wanted, new Set()).map((one) => one.id);
  expect(ids({})).toHaveLength(5);
  expect(ids({ show: 'error' })).toEqual(['d']);
  expect(ids({ show: 'waiting' })).toEqual(['e']);
  expect(ids({ text: 'AGENT  cancels' })).toEqual(['c']);
  expect(ids({ scenario: 's3' })).toEqual(['d']);
});

it('runs are counted as the server counts them', () => {
  const unasserted = run('f', 'pass');
  if (unasserted.result) unasserted.result.asserted = false;
  expect(countsOf([...runs, unasserted])).toEqual({
    total: 6,
    queued: 1,
    running: 0,
    passed: 3,
    failed: 1,
    errored: 1,
    cancelled: 0,
    unasserted: 1,
  });
});

it('rates come with a Wilson interval, and none rests on nothing', () => {
  const { rate, low, high } = rateOf(5, 1);
  expect([rate, low, high].map((one) => one?.toFixed(3))).toEqual(['0.833', '0.436', '0.970']);
  expect(rateOf(0, 0).rate).toBeNull();
  expect(rateOf(3, 0).high).toBe(1);
  expect(rateOf(0, 3).low).toBe(0);
});
