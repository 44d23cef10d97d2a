// Asks before something is deleted, and shows why it could not be.
import { Button, Group, Modal, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { ErrorState } from './ErrorState';

interface Props {
  opened: boolean;
  onClose: () => void;
  /** What is deleted, for example: scenario "Book a table" */
  what: string;
  consequence?: string;
  onDelete: () => Promise<unknown>;
  onDeleted: () => void;
}

export function ConfirmDelete({ opened, onClose, what, consequence, onDelete, onDeleted }: Props) {
  const deleting = useMutation({ mutationFn: onDelete, onSuccess: onDeleted });
  const close = () => {
    deleting.reset();
    onClose();
  };
  return (
    <Modal opened={opened} onClose={close} title={`Delete ${what}?`}>
      <Text size="sm">{consequence ?? 'This cannot be undone.'}</Text>
      {deleting.error && <ErrorState error={deleting.error} title="It was not deleted" />}
      <Group justify="flex-end" mt="md">
        <Button variant="default" onClick={close} data-autofocus>
          Keep it
        </Button>
        <Button color="red.9" loading={deleting.isPending} onClick={() => deleting.mutate()}>
          Delete
        </Button>
      </Group>
    </Modal>
  );
}
