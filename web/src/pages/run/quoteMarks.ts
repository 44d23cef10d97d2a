// Marks quotes in rendered markdown: finds them over the whole text, markup, case and blanks aside, and wraps
// the pieces of text they cover. Works on the syntax tree, so that nothing of the text is ever read as HTML.

interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

interface Span {
  from: number;
  to: number;
}

/** A rehype plugin that wraps every occurrence of the quotes in `<mark>`. */
export function markQuotes(quotes: string[]) {
  return () => (tree: Node) => {
    const pieces: Node[] = [];
    collect(tree, pieces);
    const text = pieces.map((piece) => piece.value ?? '').join('');
    const spans = spansOf(text, quotes);
    if (spans.length > 0) wrap(tree, spans, { at: 0 });
  };
}

function collect(node: Node, pieces: Node[]): void {
  if (node.type === 'text') pieces.push(node);
  for (const child of node.children ?? []) collect(child, pieces);
}

/** Where the quotes stand in a text, in order and without overlaps. */
export function spansOf(text: string, quotes: string[]): Span[] {
  const { plain, places } = plainOf(text);
  const spans: Span[] = [];
  for (const quote of quotes) {
    const quoted = plainOf(quote).plain.trim();
    if (!quoted) continue;
    for (let at = plain.indexOf(quoted); at >= 0; at = plain.indexOf(quoted, at + quoted.length)) {
      spans.push({ from: places[at] ?? 0, to: (places[at + quoted.length - 1] ?? 0) + 1 });
    }
  }
  return merged(spans);
}

/** Lower case, blanks in one, quotation marks and emphasis gone; with the place each character came from. */
function plainOf(text: string): { plain: string; places: number[] } {
  let plain = '';
  const places: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (/["'“”‘’«»*_`]/.test(character)) continue;
    const blank = /\s/.test(character);
    if (blank && plain.endsWith(' ')) continue;
    // A character that becomes longer in lower case would shift the places.
    const lower = character.toLowerCase();
    plain += blank ? ' ' : lower.length === 1 ? lower : character;
    places.push(at);
  }
  return { plain, places };
}

function merged(spans: Span[]): Span[] {
  const sorted = [...spans].sort((a, b) => a.from - b.from);
  const separate: Span[] = [];
  for (const span of sorted) {
    const last = separate.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else separate.push({ ...span });
  }
  return separate;
}

function wrap(node: Node, spans: Span[], place: { at: number }): void {
  if (!node.children) return;
  node.children = node.children.flatMap((child) => {
    if (child.type !== 'text') {
      wrap(child, spans, place);
      return [child];
    }
    const start = place.at;
    place.at += child.value?.length ?? 0;
    return split(child.value ?? '', start, spans);
  });
}

function split(text: string, start: number, spans: Span[]): Node[] {
  const parts: Node[] = [];
  let done = 0;
  for (const span of spans) {
    const from = Math.max(0, span.from - start);
    const to = Math.min(text.length, span.to - start);
    if (from >= to) continue;
    if (from > done) parts.push({ type: 'text', value: text.slice(done, from) });
    const inside: Node = { type: 'text', value: text.slice(from, to) };
    parts.push({ type: 'element', tagName: 'mark', properties: {}, children: [inside] });
    done = to;
  }
  if (done < text.length) parts.push({ type: 'text', value: text.slice(done) });
  return parts;
}
