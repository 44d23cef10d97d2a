// What people and agents say, as markdown. Never as HTML, never with pictures from elsewhere.
import { Anchor, Button, Code, Typography } from '@mantine/core';
import { memo, useMemo, useState } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { markQuotes } from './quoteMarks';
import classes from './Run.module.css';

/** Longer texts are shown as they are: formatting them would make the page wait. */
const LONGEST = 20_000;

const PLUGINS = [remarkGfm];
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
  input: ({ checked }) => <span>{checked ? '☑' : '☐'}</span>,
};

interface Props {
  text: string;
  quotes: string[];
}

export const Markdown = memo(function Markdown({ text, quotes }: Props) {
  const rehype = useMemo(() => (quotes.length > 0 ? [markQuotes(quotes)] : []), [quotes]);
  if (text.length > LONGEST) return <LongText text={text} />;
  return (
    <Typography className={classes.markdown}>
      <ReactMarkdown remarkPlugins={PLUGINS} rehypePlugins={rehype} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </Typography>
  );
});

export function LongText({ text, step = LONGEST }: { text: string; step?: number }) {
  const [length, setLength] = useState(step);
  return (
    <>
      <Code block className={classes.long}>
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
