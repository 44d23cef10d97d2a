// Around every editor: its title, what went wrong, saving, deleting, and the questions before something is lost.
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconAlertTriangle, IconDeviceFloppy, IconTrash } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { ConfirmDelete } from '../parts/ConfirmDelete';
import { PageTitle } from '../parts/PageTitle';
import { UnsavedGuard } from '../parts/UnsavedGuard';
import { ConflictDialog } from './ConflictDialog';
import classes from './Editing.module.css';
import type { Editor } from './useEditor';

type EditorFrameProps<B> = {
  editor: Editor<B>;
  noun: string;
  /** Its name as it is kept; none for a new one. */
  name?: string;
  above: ReactNode[];
  actions?: ReactNode;
  deleting?: { run: () => Promise<unknown>; done: () => void; consequence?: string };
  children: ReactNode;
};

export function EditorFrame<B>(props: EditorFrameProps<B>) {
  const { editor, noun, name, above, actions, deleting, children } = props;
  const [asking, setAsking] = useState(false);
  useHotkeys([['mod+S', () => void editor.save()]], []);
  const remove = deleting && (
    <Button variant="default" leftSection={<IconTrash size={16} />} onClick={() => setAsking(true)}>
      Delete
    </Button>
  );
  return (
    <>
      <PageTitle
        title={name ?? `New ${noun}`}
        above={above}
        actions={
          <>
            {actions}
            {remove}
          </>
        }
      />
      <Stack gap="md" maw={960}>
        {children}
      </Stack>
      <SaveBar editor={editor} isNew={name === undefined} />
      <ConflictDialog editor={editor} noun={noun} />
      <UnsavedGuard unsaved={editor.dirty} />
      {deleting && (
        <ConfirmDelete
          opened={asking}
          onClose={() => setAsking(false)}
          what={`${noun} "${name}"`}
          consequence={deleting.consequence}
          onDelete={deleting.run}
          onDeleted={deleting.done}
        />
      )}
    </>
  );
}

function SaveBar<B>({ editor, isNew }: { editor: Editor<B>; isNew: boolean }) {
  return (
    <div className={classes.bar}>
      {editor.failure && (
        <Alert
          color="red"
          role="alert"
          icon={<IconAlertTriangle aria-hidden />}
          title="Not saved"
          mb="xs"
          maw={960}
        >
          {editor.failure}
        </Alert>
      )}
      <Group gap="md">
        <Button
          leftSection={<IconDeviceFloppy size={16} />}
          loading={editor.saving}
          disabled={!editor.dirty && !isNew}
          onClick={() => void editor.save()}
        >
          {isNew ? 'Create' : 'Save'}
        </Button>
        <Text size="sm" c="dimmed" role="status">
          {editor.dirty ? 'Unsaved changes' : isNew ? '' : 'All changes saved'}
        </Text>
      </Group>
    </div>
  );
}
