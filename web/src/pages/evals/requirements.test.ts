import { expect, test } from 'vitest';
import { begun, kindOf, withField } from './requirements';

test('a requirement is of the kind that it gives', () => {
  expect(kindOf({ passRate: 0.9, metric: null })).toBe('passRate');
  expect(kindOf({ minCoverage: 0.9, criterion: 'tone' })).toBe('minCoverage');
  expect(kindOf({ criterion: 'tone', min: 0.5 })).toBe('criterion');
});

test('another kind keeps which scenarios it is about', () => {
  expect(begun('maxErrors', { passRate: 0.9, tag: 'money' })).toEqual({ maxErrors: 0, tag: 'money' });
});

test('numbers, shares and names are written as they are typed', () => {
  expect(withField({ maxErrors: 0 }, 'maxErrors', '2%')).toEqual({ maxErrors: '2%' });
  expect(withField({ maxErrors: 0 }, 'maxErrors', '3')).toEqual({ maxErrors: 3 });
  expect(withField({ noRegression: 'main' }, 'noRegression', '7')).toEqual({ noRegression: '7' });
});

test('what is emptied is left out, but never the kind itself', () => {
  expect(withField({ passRate: 0.9, tag: 'money' }, 'tag', '')).toEqual({ passRate: 0.9 });
  const emptied = withField({ passRate: 0.9 }, 'passRate', '');
  expect(kindOf(emptied)).toBe('passRate');
});
