// What a judge quoted from the conversation. Quotes that nobody said are named as such.
import { List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import classes from './Run.module.css';
import type { Quote } from './results';

export function JudgeQuotes({ quotes }: { quotes: Quote[] }) {
  if (quotes.length === 0) return null;
  return (
    <>
      <Text size="xs" fw={600}>
        Quotes
      </Text>
      <List size="sm" spacing={2} mb="xs" className={classes.quote}>
        {quotes.map((quote) => (
          <List.Item key={quote.text}>
            {quote.found ? (
              <mark>{quote.text}</mark>
            ) : (
              <>
                {quote.text}{' '}
                <Text span size="xs" c="dimmed">
                  <IconAlertTriangle size={12} aria-hidden /> not found in the transcript
                </Text>
              </>
            )}
          </List.Item>
        ))}
      </List>
    </>
  );
}
