import { expect, it } from 'vitest';
import { directEachBlock, isNestedTooDeeply, keepLineBreaks } from './markdownTree';

const text = (value: string) => ({ type: 'text', value });

it('every new line becomes a break, also within emphasis', () => {
  const strong = { type: 'strong', children: [text('b\nc')] };
  const tree = { type: 'root', children: [{ type: 'paragraph', children: [text('a\r\n'), strong] }] };
  keepLineBreaks()(tree);
  expect(JSON.stringify(tree)).toBe(
    JSON.stringify({
      type: 'root',
      children: [
        {
          type: 'paragraph',
          children: [
            text('a'),
            { type: 'break' },
            text(''),
            { type: 'strong', children: [text('b'), { type: 'break' }, text('c')] },
          ],
        },
      ],
    }),
  );
});

it('each block has a direction of its own', () => {
  const item = { type: 'element', tagName: 'li', children: [] };
  const tree = { type: 'root', children: [{ type: 'element', tagName: 'ul', children: [item] }] };
  directEachBlock()(tree);
  expect(item).toMatchObject({ properties: { dir: 'auto' } });
});

it.each([
  ['>'.repeat(5_000), true],
  ['> '.repeat(30), true],
  [`hello\n${'- '.repeat(40)}x`, true],
  ['-'.repeat(200), false],
  ['> quoted\n>> twice', false],
])('%#: nesting is judged before it is read', (markdown, deep) => {
  expect(isNestedTooDeeply(markdown)).toBe(deep);
});

it('a tree that is too deep is refused, so that the text is shown as it is', () => {
  let tree: { type: string; children: object[] } = { type: 'blockquote', children: [] };
  for (let depth = 0; depth < 100; depth += 1) tree = { type: 'blockquote', children: [tree] };
  expect(() => keepLineBreaks()(tree as never)).toThrow('too deeply');
});
