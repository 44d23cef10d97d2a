// A run as rows of a chat: the messages of each turn, then what the evaluators found after it.
import type { Schemas } from '../../api/client';
import { keyOf, type Result, type Run, type Turn } from './results';

export type Message = Schemas['Message'];

export interface MessageRow {
  kind: 'message';
  key: string;
  turn: number;
  message: Message;
  /** The result of a tool call, shown with the call */
  results: Map<string, Message>;
  /** Whether it is the agent's last word in its turn, which carries latency and tokens */
  last: boolean;
}

export interface TurnRow {
  kind: 'turn';
  key: string;
  turn: number;
  detail: Turn | null;
}

export interface ChipsRow {
  kind: 'chips';
  key: string;
  turn: number;
  results: Result[];
}

export type Row = MessageRow | TurnRow | ChipsRow;

export function rowsOf(run: Pick<Run, 'messages' | 'turns'>): Row[] {
  const rows: Row[] = [];
  let next = 0;
  for (const turn of run.turns) {
    const size = turn.messageCount ?? 0;
    rows.push(...rowsOfTurn(turn.turn, turn, run.messages.slice(next, next + size), next));
    next += size;
  }
  const rest = run.messages.slice(next);
  if (rest.length > 0) rows.push(...rowsOfTurn((run.turns.at(-1)?.turn ?? 0) + 1, null, rest, next));
  return rows;
}

function rowsOfTurn(number: number, detail: Turn | null, messages: Message[], start: number): Row[] {
  const answers = new Map<string, Message>();
  const callIds = new Set(messages.flatMap((one) => (one.tool_calls ?? []).map((call) => call.id ?? '')));
  for (const message of messages) {
    if (message.role === 'tool' && message.tool_call_id && callIds.has(message.tool_call_id)) {
      answers.set(message.tool_call_id, message);
    }
  }
  const visible = messages
    .map((message, place) => ({ message, place: start + place }))
    .filter(({ message }) => !(message.tool_call_id && answers.get(message.tool_call_id) === message));
  const lastWord = visible.findLastIndex(({ message }) => message.role === 'assistant');
  const rows: Row[] = [{ kind: 'turn', key: `turn-${number}-${start}`, turn: number, detail }];
  for (const [index, { message, place }] of visible.entries()) {
    rows.push({
      kind: 'message',
      key: `message-${place}`,
      turn: number,
      message,
      results: answers,
      last: index === lastWord,
    });
  }
  const results = (detail?.evaluatorResults ?? []) as Result[];
  if (results.length > 0) {
    rows.push({ kind: 'chips', key: `chips-${number}`, turn: number, results });
  }
  return rows;
}

/** What a message says as text; parts of other kinds are named. */
export function textOf(message: Pick<Message, 'content'>): string {
  const { content } = message;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((block) => block.text ?? (block.type === 'text' ? '' : `[${block.type}]`)).join('\n\n');
}

/** A result of one turn: the same evaluator has another one after the next. */
export function chipKey(turn: number, result: Result): string {
  return `${turn} ${keyOf(result)}`;
}

/** All that is said in a row, with the tools that were called and what they answered. */
export function rowText(row: Row): string {
  if (row.kind !== 'message') return '';
  const calls = (row.message.tool_calls ?? []).flatMap((call) => {
    const answer = row.results.get(call.id ?? '');
    return [`${call.function.name} ${call.function.arguments ?? ''}`, answer ? textOf(answer) : ''];
  });
  return [textOf(row.message), ...calls].filter(Boolean).join('\n');
}

const SPEAKERS: Record<string, string> = { user: 'User', assistant: 'Agent', tool: 'Tool', system: 'System' };

/** The conversation as text, to be put elsewhere. */
export function conversationText(rows: Row[]): string {
  return rows
    .flatMap((row) => {
      if (row.kind !== 'message') return [];
      return [`${SPEAKERS[row.message.role] ?? row.message.role}: ${rowText(row)}`];
    })
    .join('\n\n');
}

/** The turns in which an assertion failed or errored, each once, in order. */
export function failedTurns(run: Pick<Run, 'turns'>): number[] {
  return run.turns
    .filter((turn) =>
      (turn.evaluatorResults as Result[]).some(
        (result) =>
          result.kind === 'assertion' &&
          !result.pending &&
          !result.skipped &&
          (!result.success || result.error),
      ),
    )
    .map((turn) => turn.turn);
}

/** The next of some sorted numbers after this one, from the start again at the end. */
export function nextAfter(numbers: number[], current: number): number | undefined {
  return numbers.find((number) => number > current) ?? numbers[0];
}

/** JSON made readable; other text as it is. */
export function readable(text: string): string {
  if (!/^\s*[[{]/.test(text) || text.length > 100_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
