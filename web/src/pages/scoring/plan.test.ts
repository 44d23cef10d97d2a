import { describe, expect, it } from 'vitest';
import { criteriaOf, evaluatorsOf, filled, withCriteria, withEvaluators, withThreshold } from './plan';

describe('a plan in a form', () => {
  it('keeps what the form does not know', () => {
    const plan = { extends: ['base.yaml'], limits: { seconds: 3 }, evaluators: [{ type: 'regex' }] };
    expect(withEvaluators(plan, evaluatorsOf(plan))).toEqual(plan);
  });

  it('reads settings beside the type as config, and older spellings', () => {
    const plan = { evaluatorConfigs: [{ type: 'regex', pattern: 'x' }, 'nonsense', null] };
    expect(evaluatorsOf(plan).map(({ config }) => config)).toEqual([{ pattern: 'x' }]);
    expect(withEvaluators(plan, evaluatorsOf(plan))).toEqual({
      evaluatorConfigs: [{ type: 'regex', config: { pattern: 'x' } }],
    });
  });

  it('renames the limit of a criterion with it, and drops that of one that is gone', () => {
    const plan = { criteria: [{ name: 'ok' }, { name: 'kind' }], thresholds: { ok: 0.9, kind: 0.5 } };
    const [first, second] = criteriaOf(plan);
    if (!first || !second) throw new Error('two criteria were expected');
    expect(withCriteria(plan, [{ ...first, name: 'okay' }, second]).thresholds).toEqual({
      okay: 0.9,
      kind: 0.5,
    });
    expect(withCriteria(plan, [second]).thresholds).toEqual({ kind: 0.5 });
  });

  it('leaves out what says nothing, and no number', () => {
    expect(filled({ a: '', b: null, c: [], d: {}, e: 0, f: false, evaluators: [] })).toEqual({
      e: 0,
      f: false,
      evaluators: [],
    });
    expect(withThreshold({ thresholds: { ok: 1 } }, 'ok', undefined)).toEqual({});
  });
});
