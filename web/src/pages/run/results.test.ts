import { describe, expect, it } from 'vitest';
import { attemptText, type Result, scoreText, titleOf, valueText, whenText } from './results';

const metric = (more: Partial<Result>): Result => ({
  type: 'latency',
  label: 'Latency',
  kind: 'metric',
  success: true,
  reason: '',
  ...more,
});

describe('a result in words', () => {
  it.each([
    [{ value: 0 }, '0'],
    [{ value: 12.3456, unit: 'ms' }, '12.3 ms'],
    [{ value: null }, 'missing'],
    [{}, 'missing'],
    [{ value: 0, metadata: { missing: true } }, 'missing'],
  ])('%j is %s', (more, text) => expect(valueText(metric(more))).toBe(text));

  it('tells what a score needs, where there is a score', () => {
    expect(scoreText(metric({ value: 0.42, threshold: 0.5 }))).toBe('0.42 (needs 0.5)');
    expect(scoreText(metric({ value: null, threshold: 0.5 }))).toBe('–');
    expect(scoreText(metric({ value: 1 }))).toBe('1');
  });

  it('is called as it is in the scenario', () => {
    expect(titleOf(metric({ name: 'regex#2' }))).toBe('regex#2');
    expect(titleOf(metric({ name: 'tone', criterionName: 'polite' }))).toBe('tone (polite)');
    expect(titleOf(metric({}))).toBe('latency');
    expect(whenText(metric({ gate: 'always', turn: 2 }))).toBe('must hold on every turn');
  });

  it('tells every try to reach the agent', () => {
    expect(attemptText({ number: 1, error: '503', waitMs: 2000, retryAfter: 2 })).toBe(
      'attempt 1: 503; waited 2.0 s, as the agent asked (2 s)',
    );
    expect(attemptText({ number: 2 })).toBe('attempt 2: answered');
  });
});
