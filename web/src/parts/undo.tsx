// Says what was just taken away, with a button that brings it back.
import { Button, Group } from '@mantine/core';
import { notifications } from '@mantine/notifications';

const LONG_ENOUGH_MS = 10_000;

export function notifyUndo(message: string, onUndo: () => void): void {
  const id = notifications.show({
    color: 'gray',
    autoClose: LONG_ENOUGH_MS,
    closeButtonProps: { 'aria-label': 'Dismiss' },
    message: (
      <Group justify="space-between" wrap="nowrap">
        {message}
        <Button size="compact-sm" variant="default" onClick={() => undo()}>
          Undo
        </Button>
      </Group>
    ),
  });
  const undo = () => {
    notifications.hide(id);
    onUndo();
  };
}
