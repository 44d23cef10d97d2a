// Editing one definition: the draft, saving it against the version it was read at, and what went wrong.
import { hashKey } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { ApiError, type Problem } from '../api/client';
import { inputProblems } from '../forms/inputProblems';
import { without } from './problems';

export type StoredFields = { id: string; version: number; createdAt: string; updatedAt: string };

export type Shelf<B, S extends B & StoredFields> = {
  read: (id: string) => Promise<S>;
  create: (body: B) => Promise<S>;
  update: (id: string, version: number, body: B) => Promise<S>;
};

export type Trouble = { message: string; problems: Problem[] };

export type Editor<B> = {
  draft: B;
  change: (patch: Partial<B>) => void;
  dirty: boolean;
  saving: boolean;
  problems: Problem[];
  /** What is wrong with the whole of it. */
  failure: string | undefined;
  conflict: boolean;
  save: () => Promise<boolean>;
  overwrite: () => Promise<boolean>;
  reload: () => Promise<void>;
  dismissConflict: () => void;
};

type State<B> = {
  id?: string;
  version: number;
  base: B;
  draft: B;
  trouble?: Trouble;
  conflict: boolean;
  saving: boolean;
};

/** What a stored definition is without what storing added. */
export function bodyOf<B extends object>(stored: B & StoredFields): B {
  const { id: _id, version: _version, createdAt: _created, updatedAt: _updated, ...body } = stored;
  return body as unknown as B;
}

export function same(one: unknown, other: unknown): boolean {
  return hashKey([one]) === hashKey([other]);
}

export function useEditor<B extends object, S extends B & StoredFields>(
  shelf: Shelf<B, S>,
  stored: S | undefined,
  blank: B,
  onSaved: (saved: S, isNew: boolean) => void,
  /** What a new one begins with; unlike a blank, it is lost unless it is saved. */
  proposed?: B,
): Editor<B> {
  const [state, setState] = useState<State<B>>(() => ({
    ...opened(stored, blank),
    ...(proposed && { draft: proposed }),
  }));
  const dirty = !same(state.base, state.draft);
  // Somebody else's change comes in by itself as long as nothing of one's own would be lost.
  if (stored && stored.version > state.version && !dirty && !state.saving) setState(opened(stored, blank));

  const change = useCallback((patch: Partial<B>) => {
    setState((before) => ({
      ...before,
      draft: { ...before.draft, ...patch },
      trouble: before.trouble && {
        message: before.trouble.message,
        problems: without(before.trouble.problems, Object.keys(patch)),
      },
    }));
  }, []);

  const write = async (version: (id: string) => Promise<number>): Promise<boolean> => {
    const halfWritten = inputProblems();
    if (halfWritten.length > 0) {
      setState((before) => ({ ...before, trouble: { message: halfWritten.join('; '), problems: [] } }));
      return false;
    }
    setState((before) => ({ ...before, saving: true, conflict: false, trouble: undefined }));
    try {
      const { id, draft } = state;
      const saved = id ? await shelf.update(id, await version(id), draft) : await shelf.create(draft);
      setState(opened(saved, blank));
      onSaved(saved, !id);
      return true;
    } catch (error) {
      setState((before) => ({ ...before, saving: false, ...after(error) }));
      return false;
    }
  };

  return {
    draft: state.draft,
    change,
    dirty,
    saving: state.saving,
    problems: state.trouble?.problems ?? [],
    failure: state.trouble?.message,
    conflict: state.conflict,
    save: () => write(async () => state.version),
    overwrite: () => write(async (id) => (await shelf.read(id)).version),
    reload: async () => {
      if (state.id) setState(opened(await shelf.read(state.id), blank));
    },
    dismissConflict: () => setState((before) => ({ ...before, conflict: false })),
  };
}

function opened<B extends object>(stored: (B & StoredFields) | undefined, blank: B): State<B> {
  const base = stored ? bodyOf<B>(stored) : blank;
  return { id: stored?.id, version: stored?.version ?? 0, base, draft: base, conflict: false, saving: false };
}

function after(error: unknown): { conflict: boolean; trouble?: Trouble } {
  if (error instanceof ApiError && error.status === 412) return { conflict: true };
  const problems = error instanceof ApiError ? error.details : [];
  const message = error instanceof Error ? error.message : String(error);
  return { conflict: false, trouble: { message, problems } };
}
