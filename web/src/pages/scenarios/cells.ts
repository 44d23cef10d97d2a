// Cases as a table: one column per placeholder, each cell a value that may be any JSON.
import type { Case } from './draft';

/** A value as it is typed into a cell. Text that would be read as JSON is quoted. */
export function cellText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') return JSON.stringify(value);
  return typeof parsed(value) === 'string' && parsed(value) === value ? value : JSON.stringify(value);
}

/** What a cell means: JSON where it is JSON, else the text itself; an empty cell has no value. */
export function cellValue(text: string): unknown {
  return text === '' ? undefined : parsed(text);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The columns of a table of cases: every value any of them has, in the order they come. */
export function columnsOf(cases: readonly Case[], more: readonly string[] = []): string[] {
  return [...new Set([...cases.flatMap((one) => Object.keys(one.vars ?? {})), ...more])];
}

export function withVar(one: Case, column: string, value: unknown): Case {
  const { [column]: _old, ...others } = one.vars ?? {};
  if (value === undefined) return { ...one, vars: others };
  return { ...one, vars: { ...one.vars, [column]: value } };
}

export function withoutColumn(cases: readonly Case[], column: string): Case[] {
  return cases.map((one) => withVar(one, column, undefined));
}

/** The cases with the values that others, row by row, have in a column. */
export function withColumnOf(cases: readonly Case[], others: readonly Case[], column: string): Case[] {
  return cases.map((one, index) => withVar(one, column, others[index]?.vars?.[column]));
}
