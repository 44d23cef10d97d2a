// What people and agents say, as markdown. Never as HTML, never with pictures from elsewhere.
import { Anchor, Button, Code, Typography } from '@mantine/core';
import { memo, useMemo, useState } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { directEachBlock, isNestedTooDeeply, keepLineBreaks } from './markdownTree';
import { PlainFallback } from './PlainFallback';
import { markQuotes } from './quoteMarks';
import classes from './Run.module.css';

/** Longer texts are shown as they are: formatting them would make the page wait. */
const LONGEST = 20_000;

const NO_QUOTES: string[] = [];
const PLUGINS = [remarkGfm, keepLineBreaks];
const COMPONENTS: Components = {
  // What an agent links to is shown, and opened only on purpose.
  a: ({ href, children }) => (
    <Anchor href={href} target="_blank" rel="noopener noreferrer nofollow" inherit>
      {children}
    </Anchor>
  ),
  img: ({ src, alt }) => (
    <Anchor href={String(src)} target="_blank" rel="noopener noreferrer nofollow" inherit>
      [picture{alt ? `: ${alt}` : ''}]
    </Anchor>
  ),
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className={classes.tableBox} tabIndex={0} aria-label="Table">
      <table>{children}</table>
    </section>
  ),
  pre: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <pre tabIndex={0} dir="ltr">
      {children}
    </pre>
  ),
  input: ({ checked }) => <span>{checked ? '☑' : '☐'}</span>,
};

interface Props {
  text: string;
  quotes?: string[];
  /** As it was written, without any formatting */
  plain?: boolean;
}

export const Markdown = memo(function Markdown({ text, quotes = NO_QUOTES, plain = false }: Props) {
  if (text.length > LONGEST) return <LongText text={text} />;
  if (plain || isNestedTooDeeply(text)) return <PlainText text={text} />;
  return (
    <PlainFallback key={text} fallback={<PlainText text={text} />}>
      <Formatted text={text} quotes={quotes} />
    </PlainFallback>
  );
});

function Formatted({ text, quotes }: { text: string; quotes: string[] }) {
  const rehype = useMemo(
    () => (quotes.length > 0 ? [directEachBlock, markQuotes(quotes)] : [directEachBlock]),
    [quotes],
  );
  return (
    <Typography className={classes.markdown}>
      <ReactMarkdown remarkPlugins={PLUGINS} rehypePlugins={rehype} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </Typography>
  );
}

/** Text as it was written: every blank and every new line. */
function PlainText({ text }: { text: string }) {
  return (
    <div className={classes.plain} dir="auto">
      {text}
    </div>
  );
}

export function LongText({ text, step = LONGEST }: { text: string; step?: number }) {
  const [length, setLength] = useState(step);
  return (
    <>
      <Code block className={classes.long} tabIndex={0} dir="auto">
        {text.slice(0, length)}
      </Code>
      {length < text.length && (
        <Button size="compact-xs" variant="subtle" onClick={() => setLength(length + 5 * step)}>
          Show more ({(text.length - length).toLocaleString('en')} characters left)
        </Button>
      )}
    </>
  );
}
