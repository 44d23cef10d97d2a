// Somebody else saved first: keep theirs or write over it.
import { Button, Group, Modal, Text } from '@mantine/core';
import type { Editor } from './useEditor';

export function ConflictDialog<B>({ editor, noun }: { editor: Editor<B>; noun: string }) {
  return (
    <Modal
      opened={editor.conflict}
      onClose={editor.dismissConflict}
      title="Changed by somebody else"
      closeButtonProps={{ 'aria-label': 'Keep editing' }}
    >
      <Text size="sm">
        This {noun} was changed after you opened it. Reload to see the other change; yours is lost then.
        Overwrite to keep yours; the other one is lost then.
      </Text>
      <Group mt="lg" justify="flex-end">
        <Button variant="default" onClick={() => void editor.reload()}>
          Reload
        </Button>
        <Button color="red.9" onClick={() => void editor.overwrite()}>
          Overwrite
        </Button>
      </Group>
    </Modal>
  );
}
