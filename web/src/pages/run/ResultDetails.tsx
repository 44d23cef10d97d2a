// All of one evaluator's result: its reason in full, what was quoted, and the data behind it.
import { Box, Code } from '@mantine/core';
import { Folded } from './Folded';
import { JudgeQuotes } from './JudgeQuotes';
import { Markdown } from './Markdown';
import classes from './Run.module.css';
import { detailsOf, quotesOf, type Result } from './results';

export function ResultDetails({ result }: { result: Result }) {
  return (
    <>
      <Box mb="xs">
        <Markdown text={result.reason} />
      </Box>
      <JudgeQuotes quotes={quotesOf(result)} />
      <Code block className={classes.long} data-testid="metadata" tabIndex={0} aria-label="Details">
        {JSON.stringify(detailsOf(result), null, 2)}
      </Code>
      {result.traceback && <Folded title="Traceback" text={result.traceback} />}
    </>
  );
}
