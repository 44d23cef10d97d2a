// Something could not be read or done: what was wrong, where, and a way on.
import { Alert, Button, Group, List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { ApiError } from '../api/client';

interface Props {
  error: Error;
  title?: string;
  onRetry?: () => void;
  actions?: ReactNode;
}

export function ErrorState({ error, title, onRetry, actions }: Props) {
  // The message tells the first of them, with its place.
  const details = error instanceof ApiError ? error.details : [];
  return (
    <Alert
      variant="outline"
      color="red"
      role="alert"
      icon={<IconAlertTriangle aria-hidden />}
      title={title ?? titleOf(error)}
      my="md"
    >
      <Text size="sm">{error.message}</Text>
      {error instanceof ApiError && error.unreachable && (
        <Text size="sm">This page tries again by itself and is shown once the server is back.</Text>
      )}
      {details.length > 1 && (
        <List size="sm" mt="xs">
          {details.map((problem) => (
            <List.Item key={`${problem.path} ${problem.message}`}>
              <code>{problem.path}</code> {problem.message}
            </List.Item>
          ))}
        </List>
      )}
      <Group mt="sm">
        {onRetry && (
          <Button variant="default" size="xs" onClick={onRetry}>
            Try again
          </Button>
        )}
        {actions}
      </Group>
    </Alert>
  );
}

function titleOf(error: Error): string {
  if (!(error instanceof ApiError)) return 'This page failed';
  if (error.unreachable) return 'The server does not answer';
  if (error.status === 404) return 'Not found';
  if (error.code === 'changed_meanwhile') return 'Somebody else changed it meanwhile';
  return 'That did not work';
}
