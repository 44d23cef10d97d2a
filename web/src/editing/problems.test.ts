import { describe, expect, it } from 'vitest';
import { at, errorTree, steps, under, without } from './problems';

const PROBLEMS = [
  { path: 'name', message: 'must not be blank' },
  { path: 'evaluators[1].config.rules[0].tool', message: 'is missing' },
  { path: 'evaluators[10].type', message: 'is unknown' },
  { path: '', message: 'nothing judges this' },
];

describe('problems', () => {
  it('have paths made of steps', () => {
    expect(steps('evaluators[1].config.rules[0].tool')).toEqual([
      'evaluators',
      1,
      'config',
      'rules',
      0,
      'tool',
    ]);
    expect(steps('')).toEqual([]);
  });

  it('are found at their place', () => {
    expect(at(PROBLEMS, 'name')).toBe('must not be blank');
    expect(at(PROBLEMS, '')).toBe('nothing judges this');
    expect(at(PROBLEMS, 'nam')).toBeUndefined();
  });

  it('are found inside a place, and not in one that is merely called alike', () => {
    expect(under(PROBLEMS, 'evaluators[1]')).toEqual([
      { path: 'config.rules[0].tool', message: 'is missing' },
    ]);
    expect(under(PROBLEMS, 'evaluators[1].config')).toEqual([
      { path: 'rules[0].tool', message: 'is missing' },
    ]);
    expect(under(PROBLEMS, 'eval')).toEqual([]);
  });

  it('go when their field is changed', () => {
    expect(without(PROBLEMS, ['evaluators']).map(({ path }) => path)).toEqual(['name', '']);
    expect(without(PROBLEMS, ['tags'])).toBe(PROBLEMS);
  });

  it('become the tree generated forms want', () => {
    const tree = errorTree([
      { path: 'rules[0].tool', message: 'a' },
      { path: 'rules[0].tool', message: 'b' },
      { path: '', message: 'c' },
    ]);
    expect(tree).toEqual({ rules: { 0: { tool: { __errors: ['a', 'b'] } } }, __errors: ['c'] });
  });

  it('stay in the tree, whatever a key is called', () => {
    errorTree([{ path: '__proto__.constructor', message: 'unknown key' }]);
    expect(({} as { constructor: { __errors?: string[] } }).constructor.__errors).toBeUndefined();
  });
});
