// Reading a run's results: which are assertions, which measure, where each stands, and what the judge quoted.
import type { Schemas } from '../../api/client';
import { GATES } from '../../editing/gates';
import { duration, measure } from '../../parts/numbers';
import type { Standing } from '../../parts/outcome';

type Whole = Schemas['Finding'];
// Parts that do not apply are left out of a result.
export type Result = Partial<Whole> &
  Pick<Whole, 'type' | 'label' | 'kind' | 'success' | 'reason'> & {
    unit?: string | null;
    threshold?: number | null;
  };
/** One try to reach the agent; the last one answered unless it has an error. */
export interface Attempt {
  number: number;
  error?: string | null;
  waitMs?: number | null;
  retryAfter?: number | null;
}
/** What is told of a turn only where it applies. */
interface TurnDetails {
  attempts?: Attempt[] | null;
  metadata?: Record<string, unknown> | null;
  firstTokenMs?: number | null;
  usageMissing?: string | null;
  redacted?: string[] | null;
}
export type Turn = Schemas['Turn'] & TurnDetails;
export type Run = Schemas['Run'];

export interface Quote {
  text: string;
  found: boolean;
}

export interface Tokens {
  input: number;
  output: number;
  total: number;
}

export function standingOfResult(result: Result): Standing {
  if (result.error) return 'error';
  if (result.skipped) return 'skipped';
  if (result.pending) return 'pending';
  return result.success ? 'pass' : 'fail';
}

/** An evaluator by its name in the scenario, as the command line and the JSON have it. */
export function titleOf(result: Result): string {
  const name = result.name || result.type;
  const about = result.criterionName ? `${name} (${result.criterionName})` : name;
  return result.rule ? `${about}, rule ${result.rule}` : about;
}

/** The value of a metric with its unit. What could not be measured is missing, never nothing. */
export function valueText(result: Result): string {
  const missing = Boolean(result.metadata?.missing) || result.value === null || result.value === undefined;
  return missing ? 'missing' : `${measure(result.value)} ${result.unit ?? ''}`.trim();
}

/** The score of an assertion, with the least it needs where it has one. */
export function scoreText(result: Result): string {
  const { value, threshold } = result;
  const needed = value !== null && value !== undefined && threshold !== null && threshold !== undefined;
  return needed ? `${measure(value)} (needs ${measure(threshold)})` : measure(value);
}

/** When an assertion had to hold, in words. */
export function whenText({ gate }: Result): string {
  return gate ? GATES[gate].meaning : '';
}

/** The assertions for which a run did not pass, the failures before the errors. */
export function failuresOf(results: Result[]): Result[] {
  return assertionsOf(results).filter((result) => ['fail', 'error'].includes(standingOfResult(result)));
}

/** A try to reach the agent in words. */
export function attemptText({ number, error, waitMs, retryAfter }: Attempt): string {
  const asked = retryAfter ? `, as the agent asked (${retryAfter} s)` : '';
  const waited = waitMs ? `; waited ${duration(waitMs)}${asked}` : '';
  return `attempt ${number}: ${error ?? 'answered'}${waited}`;
}

/** The run's own results; while it is under way, the newest of each evaluator so far. */
export function resultsOf(run: Run): Result[] {
  const final = run.output?.evaluatorResults as Result[] | undefined;
  if (final) return final;
  const newest = new Map<string, Result>();
  for (const turn of run.turns) {
    for (const result of turn.evaluatorResults as Result[]) newest.set(keyOf(result), result);
  }
  return [...newest.values()];
}

export function keyOf(result: Result): string {
  return `${result.name ?? result.type} ${result.criterionName ?? ''} ${result.rule ?? ''}`;
}

export function assertionsOf(results: Result[]): Result[] {
  const order: Standing[] = ['fail', 'error', 'pending', 'pass', 'skipped'];
  const place = (result: Result) => order.indexOf(standingOfResult(result));
  return results.filter((result) => result.kind === 'assertion').sort((a, b) => place(a) - place(b));
}

export function metricsOf(results: Result[]): Result[] {
  return results.filter((result) => result.kind === 'metric');
}

export function quotesOf(result: Result): Quote[] {
  const evidence = result.metadata?.evidence;
  if (!Array.isArray(evidence)) return [];
  return evidence.flatMap((one: unknown) => {
    const { quote, found } = (one ?? {}) as { quote?: unknown; found?: unknown };
    return typeof quote === 'string' && quote.trim() ? [{ text: quote, found: found === true }] : [];
  });
}

/** What is worth showing of a result beyond its columns. */
export function detailsOf(result: Result): Record<string, unknown> {
  const { type, label, gate, turn, durationMs, decisive, score, fault, error } = result;
  const facts = { type, label, gate, turn, durationMs, decisive, score, fault, error, ...result.metadata };
  return Object.fromEntries(
    Object.entries(facts).filter(([, value]) => value !== undefined && value !== null),
  );
}

export function tokensOf(usage: unknown): Tokens | null {
  if (!usage || typeof usage !== 'object') return null;
  const fields = usage as Record<string, unknown>;
  const read = (snake: string, camel: string) => Number(fields[snake] ?? fields[camel] ?? 0);
  return {
    input: read('input_tokens', 'inputTokens'),
    output: read('output_tokens', 'outputTokens'),
    total: read('total_tokens', 'totalTokens'),
  };
}
