// An ordered list being edited. Rows keep a key of their own, so that what is typed moves with its row.
import { useRef } from 'react';
import { notifyUndo } from '../parts/undo';

export type Rows<T> = {
  keys: string[];
  add: (item: T) => void;
  set: (index: number, item: T) => void;
  remove: (index: number) => void;
  /** Nothing happens at the ends. */
  move: (from: number, to: number) => void;
};

/** The list with one item in another place. */
export function moved<T>(items: readonly T[], from: number, to: number): T[] {
  const done = [...items];
  const [item] = done.splice(from, 1);
  if (item !== undefined) done.splice(to, 0, item);
  return done;
}

/** The list with one more item, at a place or at the end of a list that has become shorter. */
export function inserted<T>(items: readonly T[], index: number, item: T): T[] {
  return [...items.slice(0, index), item, ...items.slice(index)];
}

let made = 0;
const fresh = () => `row-${made++}`;

export function useRows<T>(items: readonly T[], onChange: (items: T[]) => void): Rows<T> {
  const rowKeys = useRef<string[]>([]);
  if (rowKeys.current.length !== items.length)
    rowKeys.current = items.map((_, index) => rowKeys.current[index] ?? fresh());
  const keys = rowKeys.current;
  // What is brought back goes into the list as it is then, not as it was when it was taken away.
  const latest = useRef({ items, onChange });
  latest.current = { items, onChange };
  const bringBack = (index: number, item: T) => {
    rowKeys.current = inserted(rowKeys.current, index, fresh());
    latest.current.onChange(inserted(latest.current.items, index, item));
  };
  const become = (nextKeys: string[], next: T[]) => {
    rowKeys.current = nextKeys;
    onChange(next);
  };
  return {
    keys,
    add: (item) => become([...keys, fresh()], [...items, item]),
    set: (index, item) => onChange(items.map((one, place) => (place === index ? item : one))),
    remove: (index) => {
      const item = items[index];
      become(
        keys.filter((_, place) => place !== index),
        items.filter((_, place) => place !== index),
      );
      if (item !== undefined) notifyUndo('Removed', () => bringBack(index, item));
    },
    move: (from, to) => {
      if (to >= 0 && to < items.length) become(moved(keys, from, to), moved(items, from, to));
    },
  };
}
