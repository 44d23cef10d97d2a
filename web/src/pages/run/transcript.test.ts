import { describe, expect, it } from 'vitest';
import type { Result, Turn } from './results';
import {
  chipKey,
  conversationText,
  failedTurns,
  type Message,
  nextAfter,
  readable,
  rowsOf,
  textOf,
} from './transcript';
import { matchingRows } from './useTranscriptSearch';

const say = (role: string, content: string | null, more: Partial<Message> = {}): Message => ({
  role,
  content,
  ...more,
});
const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{}' } };

function turn(number: number, messageCount: number, results: object[] = []): Turn {
  return {
    turn: number,
    messageCount,
    latencyMs: 5,
    tokensUsage: null,
    firstTokenMs: null,
    usageMissing: null,
    attempts: null,
    metadata: null,
    redacted: null,
    evaluatorResults: results as Turn['evaluatorResults'],
  };
}

const assertion = (success: boolean, more: object = {}) => ({
  type: 'regex',
  label: 'Regex',
  kind: 'assertion',
  success,
  reason: '',
  ...more,
});

describe('rows of a transcript', () => {
  it('put the result of a tool with its call', () => {
    const messages = [
      say('user', 'hi'),
      say('assistant', null, { tool_calls: [call] }),
      say('tool', 'found', { tool_call_id: 'c1' }),
      say('assistant', 'here'),
    ];
    const rows = rowsOf({ messages, turns: [turn(1, 4)] });
    expect(rows.map((row) => row.kind)).toEqual(['turn', 'message', 'message', 'message']);
    const asking = rows[2];
    expect(asking?.kind === 'message' && asking.results.get('c1')?.content).toBe('found');
  });

  it('keep the result of a tool that nobody called', () => {
    const messages = [say('tool', 'stray', { tool_call_id: 'zz' })];
    expect(rowsOf({ messages, turns: [turn(1, 1)] })).toHaveLength(2);
  });

  it('give latency to the last word of the agent only', () => {
    const messages = [say('assistant', 'one'), say('assistant', 'two')];
    const rows = rowsOf({ messages, turns: [turn(1, 2)] });
    expect(rows.map((row) => row.kind === 'message' && row.last)).toEqual([false, false, true]);
  });

  it('show what was said in a turn that broke off', () => {
    const rows = rowsOf({ messages: [say('user', 'a'), say('user', 'b')], turns: [turn(1, 1)] });
    expect(rows.at(-1)).toMatchObject({ kind: 'message', turn: 2 });
  });

  it('are none for a run that never began', () => {
    expect(rowsOf({ messages: [], turns: [] })).toEqual([]);
  });

  it('have chips after turns with assertions or metrics', () => {
    const metric = { ...assertion(true), kind: 'metric' };
    const turns = [turn(1, 0, [assertion(true)]), turn(2, 0, [metric]), turn(3, 0)];
    expect(rowsOf({ messages: [], turns }).filter((row) => row.kind === 'chips')).toHaveLength(2);
  });

  it('are found by what was said and by the tools that were called', () => {
    const messages = [
      say('user', 'Where is it?'),
      say('assistant', null, { tool_calls: [call] }),
      say('tool', 'in the drawer', { tool_call_id: 'c1' }),
      say('assistant', 'Here'),
    ];
    const rows = rowsOf({ messages, turns: [turn(1, 4)] });
    expect(matchingRows(rows, 'WHERE is')).toEqual([1]);
    expect(matchingRows(rows, 'drawer')).toEqual([2]);
    expect(matchingRows(rows, ' ')).toEqual([]);
    expect(conversationText(rows)).toBe('User: Where is it?\n\nAgent: find {}\nin the drawer\n\nAgent: Here');
  });

  it('have results of their own under each turn', () => {
    const result = assertion(false) as Result;
    expect(chipKey(8, result)).not.toBe(chipKey(14, result));
  });
});

it('the next failure comes after this one, and from the start again at the end', () => {
  const turns = [
    turn(1, 0, [assertion(true)]),
    turn(2, 0, [assertion(false)]),
    turn(3, 0, [assertion(false, { pending: true })]),
    turn(4, 0, [assertion(false, { error: 'broke' })]),
    turn(5, 0, [assertion(false, { skipped: true })]),
  ];
  expect(failedTurns({ turns })).toEqual([2, 4]);
  expect([nextAfter([2, 4], 2), nextAfter([2, 4], 4), nextAfter([], 1)]).toEqual([4, 2, undefined]);
});

it('parts of a message are joined, and those without text are named', () => {
  const content = [{ type: 'text', text: 'see' }, { type: 'image_url' }];
  expect(textOf({ content })).toBe('see\n\n[image_url]');
  expect(textOf({ content: null })).toBe('');
});

it('JSON is laid out and everything else left as it is', () => {
  expect(readable('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(['{broken', 'plain', ''].map(readable)).toEqual(['{broken', 'plain', '']);
});
