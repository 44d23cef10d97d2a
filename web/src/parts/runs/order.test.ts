import { expect, it } from 'vitest';
import type { Run, RunColumn } from './columns';
import { nextSort, sorted } from './order';

const runs = [
  { id: 'a', scenarioName: 'Scenario 10', latencyMs: 30 },
  { id: 'b', scenarioName: 'scenario 2', latencyMs: null },
  { id: 'c', scenarioName: 'Scenario 1', latencyMs: 4 },
] as Run[];
const columns = [
  { id: 'name', order: (run) => run.scenarioName },
  { id: 'latency', order: (run) => run.latencyMs },
  { id: 'plain' },
] as RunColumn[];
const ids = (sort?: string) => sorted(runs, columns, sort).map((run) => run.id);

it('rows are sorted by numbers in names and values, and what has no value comes last', () => {
  expect(ids()).toEqual(['a', 'b', 'c']);
  expect(ids('name')).toEqual(['c', 'b', 'a']);
  expect(ids('-name')).toEqual(['a', 'b', 'c']);
  expect(ids('latency')).toEqual(['c', 'a', 'b']);
  expect(ids('-latency')).toEqual(['a', 'c', 'b']);
});

it('a column that is unknown or has no order changes nothing', () => {
  expect(ids('nothing')).toEqual(['a', 'b', 'c']);
  expect(ids('plain')).toEqual(['a', 'b', 'c']);
});

it('a head sorts up, down, and not at all', () => {
  expect([undefined, 'name', '-name', 'latency'].map((sort) => nextSort('name', sort))).toEqual([
    'name',
    '-name',
    undefined,
    'name',
  ]);
});
