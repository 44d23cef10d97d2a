// What differs between two conversations: words of the answers, tool calls, and verdicts of evaluators.
import { keyOf, type Result, type Run, resultsOf, standingOfResult } from '../run/results';
import { type Message, textOf } from '../run/transcript';

export type Piece = { kind: 'same' | 'gone' | 'new'; text: string };

// Longer texts are shown as replaced: finding their common words would hold the page up.
const MOST_WORDS = 1_200;

/** Two texts as pieces that both have, that only the first has, and that only the second has. */
export function wordDiff(before: string, after: string): Piece[] {
  if (before === after) return before ? [{ kind: 'same', text: before }] : [];
  const [a, b] = [words(before), words(after)];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return replaced(before, after);
  const pieces = merged(walked(a, b, lengths(a, b)));
  return alike(pieces, before, after) ? pieces : replaced(before, after);
}

/** Texts that share little are read more easily one after the other than word by word. */
function alike(pieces: Piece[], before: string, after: string): boolean {
  const shared = pieces
    .filter((piece) => piece.kind === 'same')
    .reduce((sum, piece) => sum + piece.text.trim().length, 0);
  return shared >= 0.3 * Math.max(before.length, after.length);
}

function replaced(before: string, after: string): Piece[] {
  const both: Piece[] = [
    { kind: 'gone', text: before },
    { kind: 'new', text: after },
  ];
  return both.filter((piece) => piece.text);
}

function words(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** How long the longest common sequence is from each pair of places on. */
function lengths(a: string[], b: string[]): Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    const [row, below] = [table[i] as Uint16Array, table[i + 1] as Uint16Array];
    for (let j = b.length - 1; j >= 0; j--) {
      row[j] = a[i] === b[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return table;
}

function walked(a: string[], b: string[], table: Uint16Array[]): Piece[] {
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      pieces.push({ kind: 'same', text: a[i] ?? '' });
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && (table[i + 1]?.[j] ?? 0) >= (table[i]?.[j + 1] ?? 0))) {
      pieces.push({ kind: 'gone', text: a[i++] ?? '' });
    } else {
      pieces.push({ kind: 'new', text: b[j++] ?? '' });
    }
  }
  return pieces;
}

function merged(pieces: Piece[]): Piece[] {
  const result: Piece[] = [];
  for (const piece of pieces) {
    const last = result.at(-1);
    if (last?.kind === piece.kind) last.text += piece.text;
    else result.push({ ...piece });
  }
  return result;
}

export interface TurnDiff {
  turn: number;
  user: Piece[];
  answer: Piece[];
  calls: { kind: 'same' | 'gone' | 'new'; text: string }[];
  same: boolean;
}

interface TurnTexts {
  user: string;
  answer: string;
  calls: string[];
}

/** What was said in each turn, the user's words and the agent's, and what it called. */
export function turnTexts(run: Pick<Run, 'messages' | 'turns'>): Map<number, TurnTexts> {
  const texts = new Map<number, TurnTexts>();
  let next = 0;
  for (const turn of run.turns) {
    const own = run.messages.slice(next, next + (turn.messageCount ?? 0));
    next += own.length;
    texts.set(turn.turn, {
      user: said(own, 'user'),
      answer: said(own, 'assistant'),
      calls: own.flatMap((message) =>
        (message.tool_calls ?? []).map((call) => `${call.function.name}(${call.function.arguments ?? ''})`),
      ),
    });
  }
  return texts;
}

function said(messages: Message[], role: string): string {
  return messages
    .filter((message) => message.role === role)
    .map(textOf)
    .filter(Boolean)
    .join('\n\n');
}

const NOTHING: TurnTexts = { user: '', answer: '', calls: [] };

export function turnDiffs(base: Pick<Run, 'messages' | 'turns'>, candidate: Pick<Run, 'messages' | 'turns'>) {
  const [before, after] = [turnTexts(base), turnTexts(candidate)];
  const turns = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b);
  return turns.map((turn): TurnDiff => {
    const [then, now] = [before.get(turn) ?? NOTHING, after.get(turn) ?? NOTHING];
    const calls = callDiff(then.calls, now.calls);
    return {
      turn,
      user: wordDiff(then.user, now.user),
      answer: wordDiff(then.answer, now.answer),
      calls,
      same: then.user === now.user && then.answer === now.answer && calls.every((one) => one.kind === 'same'),
    };
  });
}

function callDiff(before: string[], after: string[]): TurnDiff['calls'] {
  return walked(before, after, lengths(before, after));
}

export interface VerdictDiff {
  key: string;
  before: Result | null;
  after: Result | null;
  changed: boolean;
}

/** The evaluators of both runs; those whose verdict changed come first. */
export function verdictDiffs(base: Run, candidate: Run): VerdictDiff[] {
  const [before, after] = [resultsOf(base), resultsOf(candidate)].map(
    (results) => new Map(results.map((result) => [keyOf(result), result])),
  ) as [Map<string, Result>, Map<string, Result>];
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  const diffs = keys.map((key): VerdictDiff => {
    const [then, now] = [before.get(key) ?? null, after.get(key) ?? null];
    const changed =
      then?.kind === 'metric' || now?.kind === 'metric'
        ? then?.value !== now?.value
        : (then && standingOfResult(then)) !== (now && standingOfResult(now));
    return { key, before: then, after: now, changed };
  });
  return diffs.sort((a, b) => Number(b.changed) - Number(a.changed));
}
