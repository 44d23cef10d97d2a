// A part of a page in a frame, with its heading and what can be done with it.
import { Group, Paper, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { type Term, Tip } from './Tip';

interface Props {
  title: string;
  /** What the title means, where it is a word of the trade */
  term?: Term;
  hint?: ReactNode;
  beside?: ReactNode;
  children: ReactNode;
}

export function Block({ title, term, hint, beside, children }: Props) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title} miw={0}>
      <Group justify="space-between" mb="xs" gap="xs">
        <div>
          <Title order={2} size="h3">
            {term ? <Tip term={term}>{title}</Tip> : title}
          </Title>
          {hint && (
            <Text size="xs" c="dimmed" component="div">
              {hint}
            </Text>
          )}
        </div>
        {beside}
      </Group>
      {children}
    </Paper>
  );
}
