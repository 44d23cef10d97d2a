// A word of the trade with what it means, on hover and on focus.
import { Text, Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './Parts.module.css';

export const GLOSSARY = {
  attempted: 'Runs that were tried. One that broke with an error counts as not passed.',
  baseline:
    'The execution that others of its eval are compared with: one that was set as baseline, or the last whole one of that branch.',
  chance:
    'How often chance alone would show a difference this large. Under 5% it is taken to be real; it is corrected for the number of comparisons.',
  coverage:
    'The share of records or runs that got a score at all. What errored or was skipped is missing from it.',
  flaky: 'Repetitions of the same thing disagree: some passed and some failed.',
  gate: 'When a check must hold: on every turn, on at least one turn, or when the conversation is over.',
  interval:
    'With so few runs the true share could be anywhere in this range; 95 times in 100 it is. More runs make it narrower.',
  regressed: 'Passes less often than in the baseline, by more than its known flakiness explains.',
  requirement: 'What an execution must reach. Missed: it did not. Undecided: too little ran to tell.',
  scored: 'Runs that passed or failed. Errors, and runs in which nothing was checked, are left out.',
  subject: 'A scenario with its case and persona on one connector: what repetitions repeat.',
  unknown: 'No run told it: agents and models that do not report what they used leave it open.',
  unasserted: 'Nothing was checked, so it neither passed nor failed; it is in no rate.',
} as const;

export type Term = keyof typeof GLOSSARY;

export function Tip({ term, children }: { term: Term; children: ReactNode }) {
  return (
    <Tooltip label={GLOSSARY[term]} multiline maw={320}>
      <Text span inherit tabIndex={0} className={classes.term}>
        {children}
      </Text>
    </Tooltip>
  );
}
