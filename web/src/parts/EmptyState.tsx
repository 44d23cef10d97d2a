// Nothing here yet: says why, and what to do next.
import { Group, Stack, Text, ThemeIcon, Title } from '@mantine/core';
import type { Icon } from '@tabler/icons-react';
import type { ReactNode } from 'react';

interface Props {
  icon: Icon;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
}

export function EmptyState({ icon: StateIcon, title, children, actions }: Props) {
  return (
    <Stack align="center" py="xl" gap="xs" ta="center">
      <ThemeIcon variant="light" size={48} radius="xl" color="gray">
        <StateIcon size={26} stroke={1.5} aria-hidden />
      </ThemeIcon>
      <Title order={2}>{title}</Title>
      {children && (
        <Text c="dimmed" maw={520} component="div">
          {children}
        </Text>
      )}
      {actions && (
        <Group mt="xs" justify="center">
          {actions}
        </Group>
      )}
    </Stack>
  );
}
