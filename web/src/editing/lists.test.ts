import { describe, expect, it } from 'vitest';
import { headersOf, isSecret, MASK, nameProblem, rowsOf } from './headers';
import { bodyOf, same } from './useEditor';
import { inserted, moved } from './useRows';

describe('moving a row', () => {
  it('puts it in its new place and nothing else', () => {
    expect(moved(['a', 'b', 'c'], 0, 2)).toEqual(['b', 'c', 'a']);
    expect(moved(['a', 'b', 'c'], 2, 0)).toEqual(['c', 'a', 'b']);
    expect(moved([], 0, 1)).toEqual([]);
  });
});

it('a row comes back to its place, or to the end of a list that became shorter', () => {
  expect(inserted(['a', 'c'], 1, 'b')).toEqual(['a', 'b', 'c']);
  expect(inserted(['a'], 5, 'b')).toEqual(['a', 'b']);
});

describe('headers', () => {
  it('survive being rows, but for those without a name', () => {
    const headers = { Authorization: MASK, 'X-Team': 'blue' };
    expect(headersOf([...rowsOf(headers), { name: ' ', value: 'lost' }])).toEqual(headers);
  });

  it.each([
    [{ name: 'X-Api-Key', value: 'abc' }, true],
    [{ name: 'X-Other', value: 'Bearer abc' }, true],
    [{ name: 'X-Other', value: MASK }, true],
    [{ name: 'Authorization', value: 'Bearer $' + '{KEY}' }, false],
    [{ name: 'X-Team', value: 'blue' }, false],
  ])('%j', (row, secret) => expect(isSecret(row)).toBe(secret));

  it('may be there once, whatever their case', () => {
    const rows = rowsOf({ 'X-Team': 'a', 'x-team': 'b' });
    expect(nameProblem(rows, 0)).toBeUndefined();
    expect(nameProblem(rows, 1)).toContain('already there');
    expect(nameProblem([{ name: '', value: 'x' }], 0)).toContain('name');
  });
});

describe('a draft', () => {
  it('is what is stored, without what storing added', () => {
    const stored = { id: '1', version: 3, createdAt: '', updatedAt: '', name: 'x' };
    expect(bodyOf<{ name: string }>(stored)).toEqual({ name: 'x' });
  });

  it('is unchanged if only the order of keys differs', () => {
    expect(same({ a: 1, b: { c: [1] } }, { b: { c: [1] }, a: 1 })).toBe(true);
    expect(same({ a: [1, 2] }, { a: [2, 1] })).toBe(false);
  });
});
