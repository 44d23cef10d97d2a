// Around every editor: its title, what went wrong, saving, deleting, and the questions before something is lost.
import { Button, Stack } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconDeviceFloppy, IconTrash } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { invalidate } from '../api/queries';
import { ConfirmDelete } from '../parts/ConfirmDelete';
import { PageLink } from '../parts/links';
import { notify } from '../parts/notifications';
import { PageTitle } from '../parts/PageTitle';
import { UnsavedGuard } from '../parts/UnsavedGuard';
import { ActionBar } from './ActionBar';
import { ConflictDialog } from './ConflictDialog';
import type { Editor } from './useEditor';

type EditorFrameProps<B> = {
  editor: Editor<B>;
  noun: 'eval' | 'persona' | 'connector' | 'scenario' | 'monitor';
  /** As it is kept; none for a new one. */
  stored?: { id: string; name: string };
  onDelete: (id: string) => Promise<unknown>;
  consequence?: string;
  actions?: ReactNode;
  /** Whether the fields are in view; without them there is nothing to save */
  editing?: boolean;
  children: ReactNode;
};

const KEPT = 'Runs of the past keep what they were. This cannot be undone.';

export function EditorFrame<B>(props: EditorFrameProps<B>) {
  const { editor, noun, stored, onDelete, consequence = KEPT, actions, editing = true, children } = props;
  const navigate = useNavigate();
  const [confirming, setConfirming] = useState(false);
  const plural = `${noun}s` as const;
  const deleted = () => {
    void invalidate([plural]);
    notify(`Deleted "${stored?.name}"`);
    void navigate({ to: `/${plural}`, ignoreBlocker: true });
  };
  useHotkeys([['mod+S', () => void editor.save()]], []);
  const remove = stored && (
    <Button variant="default" leftSection={<IconTrash size={16} />} onClick={() => setConfirming(true)}>
      Delete
    </Button>
  );
  return (
    <>
      <PageTitle
        title={stored?.name ?? `New ${noun}`}
        above={[
          <PageLink key="all" to={`/${plural}`}>
            {plural.charAt(0).toUpperCase() + plural.slice(1)}
          </PageLink>,
        ]}
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
      {(editing || editor.dirty) && <SaveBar editor={editor} isNew={stored === undefined} />}
      <ConflictDialog editor={editor} noun={noun} />
      <UnsavedGuard unsaved={editor.dirty} />
      {stored && (
        <ConfirmDelete
          opened={confirming}
          onClose={() => setConfirming(false)}
          what={`${noun} "${stored.name}"`}
          consequence={consequence}
          onDelete={() => onDelete(stored.id)}
          onDeleted={deleted}
        />
      )}
    </>
  );
}

function SaveBar<B>({ editor, isNew }: { editor: Editor<B>; isNew: boolean }) {
  return (
    <ActionBar
      refused={editor.failure ? { title: 'Not saved', why: editor.failure } : undefined}
      status={editor.dirty ? 'Unsaved changes' : isNew ? '' : 'All changes saved'}
    >
      <Button
        leftSection={<IconDeviceFloppy size={16} />}
        loading={editor.saving}
        disabled={!editor.dirty && !isNew}
        onClick={() => void editor.save()}
      >
        {isNew ? 'Create' : 'Save'}
      </Button>
    </ActionBar>
  );
}
