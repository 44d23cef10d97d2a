import { describe, expect, it } from 'vitest';
import { turnDiffs, wordDiff } from './diff';

describe('wordDiff', () => {
  it('marks the words that went and came, and keeps the others', () => {
    expect(wordDiff('We open at 9 today.', 'We open at 10 today.')).toEqual([
      { kind: 'same', text: 'We open at ' },
      { kind: 'gone', text: '9' },
      { kind: 'new', text: '10' },
      { kind: 'same', text: ' today.' },
    ]);
  });

  it('shows the same text once, and nothing for nothing', () => {
    expect(wordDiff('yes', 'yes')).toEqual([{ kind: 'same', text: 'yes' }]);
    expect(wordDiff('', '')).toEqual([]);
    expect(wordDiff('', 'new')).toEqual([{ kind: 'new', text: 'new' }]);
  });

  it('takes very long texts as replaced', () => {
    const long = 'word '.repeat(5_000);
    expect(wordDiff(long, `${long}end`).map((piece) => piece.kind)).toEqual(['gone', 'new']);
  });
});

const message = (role: string, content: string, more = {}) => ({ role, content, ...more }) as never;
const turn = (number: number, messageCount: number) => ({ turn: number, messageCount }) as never;

it('compares turn by turn, with tool calls, also where one side has more turns', () => {
  const call = { tool_calls: [{ id: '1', type: 'function', function: { name: 'find', arguments: '{}' } }] };
  const base = { messages: [message('user', 'hi'), message('assistant', 'hello')], turns: [turn(1, 2)] };
  const candidate = {
    messages: [
      message('user', 'hi'),
      message('assistant', 'hello', call),
      message('user', 'and?'),
      message('assistant', 'no'),
    ],
    turns: [turn(1, 2), turn(2, 2)],
  };
  const [first, second] = turnDiffs(base, candidate);
  expect([first?.same, first?.calls]).toEqual([false, [{ kind: 'new', text: 'find({})' }]]);
  expect(second?.answer).toEqual([{ kind: 'new', text: 'no' }]);
  expect(turnDiffs(base, base).map((one) => one.same)).toEqual([true]);
});
