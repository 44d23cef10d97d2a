// Changes to the syntax tree of a message: line breaks and directions kept, depth bounded.

interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

/** Deeper nesting is nothing that anybody wrote to be read; browsers lay it out slowly or not at all. */
const DEEPEST = 60;
const NESTED = /^[ \t]*(?:>[ \t]*|[-*+][ \t]+){20,}/m;

/** Whether reading a text as markdown would nest so deeply that it is better shown as it is. */
export function isNestedTooDeeply(text: string): boolean {
  return NESTED.test(text);
}

/** A remark plugin: a new line in the text is a new line on the page, as it is in a chat. */
export function keepLineBreaks() {
  return (tree: Node) => breakLines(tree, 0);
}

function breakLines(node: Node, depth: number): void {
  if (depth > DEEPEST) throw new RangeError('nested too deeply to be shown as markdown');
  node.children = node.children?.flatMap((child) => {
    if (child.type === 'text') return lines(child);
    breakLines(child, depth + 1);
    return [child];
  });
}

function lines(node: Node): Node[] {
  const [first = '', ...rest] = (node.value ?? '').split(/\r?\n/);
  if (rest.length === 0) return [node];
  return [
    { ...node, value: first },
    ...rest.flatMap((line) => [{ type: 'break' }, { type: 'text', value: line }]),
  ];
}

const BLOCKS = new Set(['p', 'li', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'td', 'th', 'ul', 'ol']);

/** A rehype plugin: each block runs in the direction of its own script. */
export function directEachBlock() {
  return (tree: Node) => direct(tree);
}

function direct(node: Node): void {
  if (node.tagName && BLOCKS.has(node.tagName)) node.properties = { ...node.properties, dir: 'auto' };
  for (const child of node.children ?? []) direct(child);
}
