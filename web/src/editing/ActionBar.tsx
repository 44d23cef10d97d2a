// The bar at the foot of an editor: what went wrong, what can be done, and how it stands.
import { Alert, Group, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import classes from './Editing.module.css';

interface Props {
  /** What did not come about, and why */
  refused?: { title: string; why: string };
  status?: ReactNode;
  children: ReactNode;
}

export function ActionBar({ refused, status, children }: Props) {
  return (
    <div className={classes.bar}>
      {refused && (
        <Alert
          color="red"
          role="alert"
          icon={<IconAlertTriangle aria-hidden />}
          title={refused.title}
          mb="xs"
          maw={960}
        >
          {refused.why}
        </Alert>
      )}
      <Group gap="md">
        {children}
        <Text size="sm" c="dimmed" role="status">
          {status}
        </Text>
      </Group>
    </div>
  );
}
