import { describe, expect, it } from 'vitest';
import { filterOf, queryOf } from './filter';

describe('the filter of runs', () => {
  it('takes from an address what means something', () => {
    expect(filterOf({ outcome: 'fail', fault: 'nobody', said: 'hello', min: '0', max: 'x' })).toEqual({
      outcome: 'fail',
      said: 'hello',
      min: 0,
    });
  });

  it('asks for a range only together with its metric, and for whole days', () => {
    expect(queryOf({ min: 1, verdict: 'fail' })).not.toHaveProperty('metricMin', 1);
    const { since, until } = queryOf({ since: '2026-03-01', until: '2026-03-01' });
    expect(Date.parse(until ?? '') - Date.parse(since ?? '')).toBe(86_400_000);
  });
});
