import { describe, expect, it } from 'vitest';
import { type Condition, scalarOf, tested, testOf, textOf, textsOf } from './conditions';

const of = (fields: object) => ({ attribute: 'user.tier', ...fields }) as Condition;

describe('a condition of a filter', () => {
  it.each([
    ['gold', 'gold'],
    ['12', 12],
    ['-0.5', -0.5],
    ['true', true],
    ['"12"', '12'],
    ['"true"', 'true'],
    ['1.', '1.'],
    ['007', '007'],
    ['""', ''],
  ])('reads %s as what it says, and writes it back', (text, value) => {
    expect(scalarOf(text)).toBe(value);
    expect(scalarOf(textOf(value))).toBe(value);
  });

  it.each([
    [{ equals: 'gold' }, 'equals', ['gold']],
    [{ equals: false }, 'equals', ['false']],
    [{ in: ['gold', 3] }, 'in', ['gold', '3']],
    [{ prefix: 'go' }, 'prefix', ['go']],
    [{ exists: true }, 'exists', []],
    [{ exists: false }, 'absent', []],
  ])('%j', (fields, test, texts) => {
    expect(testOf(of(fields))).toBe(test);
    expect(textsOf(of(fields))).toEqual(texts);
  });

  it('keeps its value under another test, and has one test only', () => {
    const one = tested(of({ equals: 'gold' }), 'in');
    expect(one).toEqual({ attribute: 'user.tier', equals: null, in: ['gold'], prefix: null, exists: null });
    expect(tested(one, 'absent')).toMatchObject({ in: null, exists: false });
  });
});
