import { expect, it } from 'vitest';
import { filteredRuns, type Run, type RunFilter, subjectKey } from './runs';

function run(
  id: string,
  outcome: 'pass' | 'fail' | 'error' | 'unasserted' | null,
  more: Partial<Run> = {},
): Run {
  const result = outcome && {
    success: outcome === 'pass',
    outcome,
    fault: null,
    score: null,
    overallScore: null,
    reason: outcome,
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
  run('f', 'unasserted', { scenarioId: 's4', scenarioName: 'Measures' }),
];

it('the runs of a flaky subject are those the server names', () => {
  const flaky = new Set([subjectKey(run('x', null))]);
  expect(filteredRuns(runs, { show: 'flaky' }, flaky).map((one) => one.id)).toEqual(['a', 'b', 'e']);
  expect(filteredRuns(runs, { show: 'flaky' }, new Set())).toEqual([]);
});

it('runs are filtered by outcome, words and scenario', () => {
  const ids = (filter: RunFilter) => filteredRuns(runs, filter, new Set()).map((one) => one.id);
  expect(ids({})).toHaveLength(6);
  expect(ids({ show: 'error' })).toEqual(['d']);
  expect(ids({ show: 'unasserted' })).toEqual(['f']);
  expect(ids({ show: 'pass' })).toEqual(['a', 'c']);
  expect(ids({ show: 'waiting' })).toEqual(['e']);
  expect(ids({ text: 'AGENT  cancels' })).toEqual(['c']);
  expect(ids({ scenario: 's3' })).toEqual(['d']);
});
