import { describe, expect, it } from 'vitest';
// The command line reads the same cases: tests/base/test_text.py.
import PERCENTS from '../../../tests/base/percents.json';
import {
  ago,
  chance,
  compact,
  count,
  dollars,
  duration,
  exactTime,
  measure,
  percent,
  plural,
  points,
} from './numbers';

describe('percent', () => {
  const whole = PERCENTS.filter(([, digits]) => digits === 0) as [number, number, string][];

  it.each(whole)('%s is never all nor nothing unless it is: %s digits, %s', (share, _, shown) => {
    expect(percent(share)).toBe(shown);
  });

  it('shows the unknown as such', () => {
    expect([null, undefined].map(percent)).toEqual(['–', '–']);
  });
});

describe('duration', () => {
  it.each([
    [0.3, '<1 ms'],
    [12.4, '12 ms'],
    [1_250, '1.3 s'],
    [42_000, '42 s'],
    [61_000, '1 min 1 s'],
    [3_660_000, '1 h 1 min'],
    [null, '–'],
  ])('%s is %s', (ms, shown) => {
    expect(duration(ms)).toBe(shown);
  });
});

it('measures are short and whole numbers stay whole', () => {
  expect([74, 0.123456, 12_345, -1, null].map(measure)).toEqual(['74', '0.123', '12,345', '-1', '–']);
});

it('differences of shares are told in points, small ones with a digit more', () => {
  expect([0.25, 0.0951, 0.0999, -0.001, 0].map(points)).toEqual([
    '+25 points',
    '+9.5 points',
    '+10 points',
    '−0.1 points',
    '0 points',
  ]);
});

it('one is one and many are many', () => {
  expect([plural(1, 'run'), plural(5_000, 'run')]).toEqual(['1 run', '5,000 runs']);
});

it('moments are told by how long ago they were', () => {
  const now = Date.parse('2026-01-10T12:00:00Z');
  expect(ago('2026-01-10T11:59:30Z', now)).toBe('just now');
  expect(ago('2026-01-10T11:58:00Z', now)).toBe('2 minutes ago');
  expect(ago('2026-01-09T12:00:00Z', now)).toBe('yesterday');
  expect(ago('2026-01-10T13:30:00Z', now)).toBe('in 1 hour');
  expect(ago('2026-01-04T11:00:00Z', now)).toBe('6 days ago');
  expect(ago('2025-01-04T11:00:00Z', now)).toBe('2025-01-04');
});

it('the exact time is that of the reader', () => {
  const noon = new Date(2026, 6, 3, 12, 4, 5);
  expect(exactTime(noon.toISOString())).toBe('2026-07-03 12:04:05');
});

it('counts have their thousands apart', () => {
  expect([0, 999, -12, 1_000, -1_234_567, null].map(count)).toEqual([
    '0',
    '999',
    '-12',
    '1,000',
    '-1,234,567',
    '–',
  ]);
});

it('chance is told in per cent, and never as nothing', () => {
  expect([1, 0.25, 0.0321, 0.001, 0.0009, 0].map(chance)).toEqual([
    '100%',
    '25%',
    '3.2%',
    '0.1%',
    'under 0.1%',
    'under 0.1%',
  ]);
});

it('large numbers are told in thousands, millions and billions', () => {
  expect([0, 999, 2_512, 12_000, 999_950, 1_234_567, 5e9, -2_500, 12.34].map(compact)).toEqual([
    '0',
    '999',
    '2.5K',
    '12K',
    '1M',
    '1.2M',
    '5B',
    '-2.5K',
    '12.3',
  ]);
});

it('money has two digits after the point, and more below a cent', () => {
  expect([0, 1.5, 1234.567, -2, 0.00123, -0.004, null].map(dollars)).toEqual([
    '$0.00',
    '$1.50',
    '$1,234.57',
    '-$2.00',
    '$0.0012',
    '-$0.004',
    '–',
  ]);
});
