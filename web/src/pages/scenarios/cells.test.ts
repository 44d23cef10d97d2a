import { describe, expect, it } from 'vitest';
import { cellText, cellValue, columnsOf, withoutColumn, withVar } from './cells';
import { BLANK, isPlain, placeholders } from './draft';

describe('a cell', () => {
  it.each([
    ['Tuesday', 'Tuesday'],
    ['30', 30],
    ['"30"', '30'],
    ['true', true],
    ['["a", "b"]', ['a', 'b']],
    ['{"a": 1', '{"a": 1'],
    ['', undefined],
    ['🙂 ünïcode', '🙂 ünïcode'],
  ])('%s means %j', (text, value) => expect(cellValue(text)).toEqual(value));

  it.each([
    ['Tuesday'],
    [30],
    ['30'],
    [true],
    ['true'],
    [['a']],
    [{ a: null }],
    ['"quoted"'],
    [' 7 '],
    ['null'],
  ])('keeps %j as it is', (value) => expect(cellValue(cellText(value))).toEqual(value));
});

describe('a table of cases', () => {
  const cases = [{ vars: { day: 'Monday' } }, { name: 'two', vars: { people: 2, day: 'Friday' } }];

  it('has a column for every value, and for those that are wanted', () => {
    expect(columnsOf(cases, ['people', 'time'])).toEqual(['day', 'people', 'time']);
  });

  it('loses a value whose cell is emptied, and a column everywhere', () => {
    expect(withVar({ vars: { a: 1, b: 2 } }, 'a', undefined)).toEqual({ vars: { b: 2 } });
    expect(withVar({}, 'a', 1)).toEqual({ vars: { a: 1 } });
    expect(withoutColumn(cases, 'day').map((one) => one.vars)).toEqual([{}, { people: 2 }]);
  });
});

describe('a scenario', () => {
  it('tells its placeholders, each once', () => {
    const draft = {
      ...BLANK,
      instructions: 'Book for {{people}} on {{ day }}',
      script: ['{{people}}', '{{}}', '{single}'],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'I am {{name}}' }] }],
      successCriteria: 'On {{day}}',
    };
    expect(placeholders(draft)).toEqual(['people', 'day', 'name']);
    const config = { expected: { id: '{{order}}' }, promptTemplate: '{{response}}', pattern: '\\{{braces}}' };
    const evaluators = [{ type: 'state-match', config, gate: null, name: null, reduce: null }];
    expect(placeholders({ ...BLANK, evaluators, groundTruth: '{{total}} {{"a": 1}}' })).toEqual([
      'order',
      'total',
    ]);
  });

  it('has plain messages, and others that are edited whole', () => {
    expect(isPlain({ role: 'user', content: 'hi', name: null })).toBe(true);
    expect(isPlain({ role: 'user', content: [{ type: 'text', text: 'hi' }] })).toBe(false);
    expect(isPlain({ role: 'tool', content: 'x', tool_call_id: 'c1' })).toBe(false);
  });
});
