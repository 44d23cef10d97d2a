// The name and the description that definitions have alike.
import { TextInput } from '@mantine/core';
import type { Problem } from '../api/client';
import { at } from './problems';

interface Editing<Fields> {
  draft: Fields;
  change: (fields: Fields) => void;
  problems: Problem[];
}

/** `hint` says where the name is used. */
export function NameField({ draft, change, problems, hint }: Editing<{ name: string }> & { hint: string }) {
  return (
    <TextInput
      label="Name"
      description={hint}
      required
      value={draft.name}
      error={at(problems, 'name')}
      onChange={(event) => change({ name: event.currentTarget.value })}
    />
  );
}

export function DescriptionField({
  draft,
  change,
  problems,
  hint,
}: Editing<{ description?: string | null }> & { hint: string }) {
  return (
    <TextInput
      label="Description"
      description={hint}
      value={draft.description ?? ''}
      error={at(problems, 'description')}
      onChange={(event) => change({ description: event.currentTarget.value || null })}
    />
  );
}
