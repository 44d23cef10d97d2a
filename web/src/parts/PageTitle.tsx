// The heading of a page with the way back to where it belongs, and what can be done with it.
import { Breadcrumbs, Group, Stack, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';

interface Props {
  title: string;
  /** Links to the pages above this one */
  above?: ReactNode[];
  /** Badges and the like, beside the title */
  beside?: ReactNode;
  actions?: ReactNode;
}

export function PageTitle({ title, above, beside, actions }: Props) {
  useDocumentTitle(`${title} · EvalStudio`);
  return (
    <Stack gap={4} mb="md">
      {above && (
        <Breadcrumbs
          component="nav"
          aria-label="Where this is"
          styles={{ breadcrumb: { fontSize: 'var(--mantine-font-size-sm)' } }}
        >
          {above}
        </Breadcrumbs>
      )}
      <Group justify="space-between" gap="xs">
        <Group gap="sm" miw={0}>
          <Title order={1} style={{ overflowWrap: 'anywhere' }}>
            {title}
          </Title>
          {beside}
        </Group>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
    </Stack>
  );
}
