// A condition on an attribute as the form edits it: which test, and its value as text.
import type { StoredMonitor } from '../../api/monitors';

export type Condition = StoredMonitor['filter'][number];
export type Test = 'equals' | 'in' | 'prefix' | 'exists' | 'absent';
type Scalar = string | number | boolean;

export const TESTS: { value: Test; label: string }[] = [
  { value: 'equals', label: 'is' },
  { value: 'in', label: 'is one of' },
  { value: 'prefix', label: 'begins with' },
  { value: 'exists', label: 'is there' },
  { value: 'absent', label: 'is not there' },
];

export function testOf(condition: Condition): Test {
  if (condition.in) return 'in';
  if (condition.prefix !== null && condition.prefix !== undefined) return 'prefix';
  if (condition.exists !== null && condition.exists !== undefined)
    return condition.exists ? 'exists' : 'absent';
  return 'equals';
}

/** The same attribute under another test, with the value as far as the new one can take it. */
export function tested(condition: Condition, test: Test): Condition {
  const texts = textsOf(condition);
  const blank = { attribute: condition.attribute, equals: null, in: null, prefix: null, exists: null };
  switch (test) {
    case 'equals':
      return { ...blank, equals: scalarOf(texts[0] ?? '') };
    case 'in':
      return { ...blank, in: texts.filter(Boolean).map(scalarOf) };
    case 'prefix':
      return { ...blank, prefix: texts[0] ?? '' };
    default:
      return { ...blank, exists: test === 'exists' };
  }
}

export function textsOf(condition: Condition): string[] {
  if (condition.in) return condition.in.map(textOf);
  if (condition.prefix) return [condition.prefix];
  return condition.equals === null || condition.equals === undefined ? [] : [textOf(condition.equals)];
}

/** What is typed: a number or true and false as what they are, anything in quotes as text. */
export function scalarOf(text: string): Scalar {
  const quoted = /^"(.*)"$/s.exec(text);
  if (quoted) return quoted[1] as string;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) : text;
}

export function textOf(value: Scalar): string {
  return typeof value === 'string' && scalarOf(value) !== value ? `"${value}"` : String(value);
}
