// One part of an editor, with what it is for.
import { Group, Paper, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';

type SectionProps = { title: string; hint?: ReactNode; action?: ReactNode; children: ReactNode };

export function Section({ title, hint, action, children }: SectionProps) {
  const id = useId();
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={id}>
      <Group justify="space-between" align="flex-start" mb="sm" gap="xs">
        <div>
          <Title order={2} id={id}>
            {title}
          </Title>
          {hint && (
            <Text size="sm" c="dimmed" mt={2} component="div">
              {hint}
            </Text>
          )}
        </div>
        {action}
      </Group>
      <Stack gap="sm">{children}</Stack>
    </Paper>
  );
}
