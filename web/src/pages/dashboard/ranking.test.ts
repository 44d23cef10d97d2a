import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { flakiest, slowest } from './ranking';

function figures(name: string, passed: number, of: number, meanLatencyMs: number | null = null) {
  const rate = { passed, of, rate: of ? passed / of : null, low: 0, high: 1 };
  return { name, passRateOfAttempted: rate, counts: { total: of }, meanLatencyMs } as Schemas['Figures'];
}

it('the flakiest is the one nearest to half and half; steady ones are left out', () => {
  const all = [
    figures('never', 0, 5),
    figures('always', 5, 5),
    figures('often', 4, 5),
    figures('half', 5, 10),
  ];
  expect(flakiest([...all, figures('none', 0, 0)]).map((one) => one.name)).toEqual(['half', 'often']);
});

it('the slowest comes first, and those without a time are left out', () => {
  const all = [figures('quick', 1, 1, 5), figures('slow', 1, 1, 900), figures('unknown', 1, 1)];
  expect(slowest(all).map((one) => one.name)).toEqual(['slow', 'quick']);
});
