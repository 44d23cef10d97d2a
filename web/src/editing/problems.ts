// What the server found wrong, brought to the field it belongs to. Paths are written "evaluators[0].config.pattern".
import type { ErrorSchema } from '@rjsf/utils';
import type { Problem } from '../api/client';

type Step = string | number;

/** "a[0].b" as its steps. */
export function steps(path: string): Step[] {
  const steps = path.matchAll(/\[(\d+)\]|([^.[\]]+)/g);
  return [...steps].map(([, index, name]) => (index === undefined ? (name as string) : Number(index)));
}

/** What is wrong inside a place, each path beginning there. */
export function under(problems: Problem[], place: string): Problem[] {
  return problems
    .filter(({ path }) => isInside(path, place))
    .map(({ path, message }) => ({ path: path.slice(place.length).replace(/^\./, ''), message }));
}

/** What is wrong at a place itself, as one line. */
export function at(problems: Problem[], place: string): string | undefined {
  const messages = problems.filter(({ path }) => path === place).map(({ message }) => message);
  return messages.length > 0 ? messages.join(', ') : undefined;
}

/** What is wrong at a place or anywhere in it, as one line with the place of each. */
export function inside(problems: Problem[], place: string): string | undefined {
  const messages = under(problems, place).map(({ path, message }) =>
    path ? `${path}: ${message}` : message,
  );
  return messages.length > 0 ? messages.join('; ') : undefined;
}

/** What is left once these fields have been changed. */
export function without(problems: Problem[], fields: string[]): Problem[] {
  const left = problems.filter(({ path }) => !fields.some((field) => isInside(path, field)));
  return left.length === problems.length ? problems : left;
}

/** Problems in the shape generated forms want. */
export function errorTree(problems: Problem[]): ErrorSchema {
  const tree: Record<string, unknown> = {};
  for (const { path, message } of problems) {
    let here = tree;
    for (const step of steps(path)) {
      // A key may be called anything; it must not lead out of the tree.
      if (!Object.hasOwn(here, step)) define(here, step, {});
      here = here[step] as Record<string, unknown>;
    }
    here.__errors = [...((here.__errors as string[] | undefined) ?? []), message];
  }
  return tree as ErrorSchema;
}

function define(object: object, key: Step, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

function isInside(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`);
}
