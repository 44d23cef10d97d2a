import { describe, expect, it } from 'vitest';
import { markQuotes, spansOf } from './quoteMarks';

const found = (text: string, ...quotes: string[]) =>
  spansOf(text, quotes).map(({ from, to }) => text.slice(from, to));

describe('quotes in a text', () => {
  it('are found whatever the case, blanks and quotation marks', () => {
    expect(found('He said:  “It is\n  DONE” today.', '"it is done"')).toEqual(['It is\n  DONE']);
  });

  it('that nobody said are not found', () => {
    expect(found('nothing of the kind', 'something else', '', '   ')).toEqual([]);
  });

  it('that overlap are marked once', () => {
    expect(found('one two three four', 'two three', 'three four')).toEqual(['two three four']);
  });

  it('are marked wherever they were said', () => {
    expect(found('yes, and yes again', 'yes')).toEqual(['yes', 'yes']);
  });

  it('are found in Unicode, with letters that grow in lower case', () => {
    expect(found('İstanbul: größer als 🚀', 'größer ALS 🚀')).toEqual(['größer als 🚀']);
  });
});

it('a quote over several pieces of markup marks each of them and keeps every character', () => {
  const text = (value: string) => ({ type: 'text', value });
  const strong = { type: 'element', tagName: 'strong', children: [text('already')] };
  const tree = { type: 'root', children: [text('It is '), strong, text(' sent <b>.')] };
  markQuotes(['is **already** sent'])()(tree);
  expect(flat(tree)).toBe('It [is ]([already])[ sent] <b>.');
});

interface Node {
  type: string;
  tagName?: string;
  value?: string;
  children?: Node[];
}

function flat(node: Node): string {
  if (node.type === 'text') return node.value ?? '';
  const inside = (node.children ?? []).map(flat).join('');
  if (node.tagName === 'mark') return `[${inside}]`;
  return node.tagName === 'strong' ? `(${inside})` : inside;
}
