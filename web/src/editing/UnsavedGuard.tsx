// Asks before unsaved changes are left behind, whether by a link, the back button or by closing the tab.
import { Button, Group, Modal, Text } from '@mantine/core';
import { useBlocker } from '@tanstack/react-router';

export function UnsavedGuard({ isDirty }: { isDirty: () => boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && isDirty(),
    enableBeforeUnload: isDirty,
    withResolver: true,
  });
  const stay = () => blocker.reset?.();
  return (
    <Modal
      opened={blocker.status === 'blocked'}
      onClose={stay}
      title="Leave without saving?"
      closeButtonProps={{ 'aria-label': 'Stay here' }}
    >
      <Text size="sm">What you changed on this page has not been saved.</Text>
      <Group mt="lg" justify="flex-end">
        <Button variant="default" onClick={stay} data-autofocus>
          Stay here
        </Button>
        <Button color="red" onClick={() => blocker.proceed?.()}>
          Leave
        </Button>
      </Group>
    </Modal>
  );
}
