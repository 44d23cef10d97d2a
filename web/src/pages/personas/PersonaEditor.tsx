// Editing a persona: who the simulated user is.
import { MultiSelect, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { client, dataOf, type Schemas } from '../../api/client';
import { connectorsQuery, createPersona, deletePersona, updatePersona } from '../../api/definitions';
import { invalidate } from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { HeadersEditor } from '../../editing/HeadersEditor';
import { DescriptionField, NameField } from '../../editing/NameFields';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { type StoredFields, useEditor } from '../../editing/useEditor';
import { notify } from '../../parts/notifications';
import { PromptPreview } from './PromptPreview';

type Stored = Schemas['StoredPersona'];
type Draft = Omit<Stored, keyof StoredFields>;

const BLANK: Draft = {
  name: '',
  description: null,
  systemPrompt: null,
  headers: {},
  connectorIds: [],
  knows: null,
  wants: null,
};
const SHELF = {
  read: (id: string) => dataOf(client.GET('/api/personas/{id}', { params: { path: { id } } })),
  create: createPersona,
  update: updatePersona,
};

export function PersonaEditor({ persona }: { persona?: Stored }) {
  const navigate = useNavigate();
  const connectors = useQuery(connectorsQuery);
  const editor = useEditor<Draft, Stored>(SHELF, persona, BLANK, (saved, isNew) => {
    void invalidate(['personas']);
    notify(`Saved "${saved.name}"`);
    if (isNew)
      void navigate({ to: '/personas/$personaId', params: { personaId: saved.id }, ignoreBlocker: true });
  });
  const { draft, change, problems } = editor;
  return (
    <EditorFrame editor={editor} noun="persona" stored={persona} onDelete={deletePersona}>
      <Section title="Who this is">
        <NameField
          hint="What scenarios and results call this person"
          draft={draft}
          change={change}
          problems={problems}
        />
        <DescriptionField
          hint="Who this is, in a few words"
          draft={draft}
          change={change}
          problems={problems}
        />
        <LongText
          label="System prompt"
          hint="How this person speaks and behaves"
          field="systemPrompt"
          {...editor}
        />
        <LongText
          label="Knows"
          hint="What only this person knows; never shown to judge or agent"
          field="knows"
          {...editor}
        />
        <LongText
          label="Wants"
          hint="What this person is after; never shown to judge or agent"
          field="wants"
          {...editor}
        />
      </Section>
      <Section title="Headers" hint="Sent to the agent with every call, over the connector's own.">
        <HeadersEditor
          value={draft.headers}
          problems={problems}
          onChange={(headers) => change({ headers })}
        />
        <MultiSelect
          label="Connectors"
          description="The only ones that secret headers are sent to"
          data={(connectors.data ?? []).map((one) => ({ value: one.id, label: one.name }))}
          value={draft.connectorIds}
          error={at(problems, 'connectorIds')}
          searchable
          onChange={(connectorIds) => change({ connectorIds })}
        />
      </Section>
      {persona && <PromptPreview persona={persona} />}
    </EditorFrame>
  );
}

type LongTextProps = {
  label: string;
  hint: string;
  field: 'systemPrompt' | 'knows' | 'wants';
  draft: Draft;
  problems: Schemas['Problem'][];
  change: (patch: Partial<Draft>) => void;
};

function LongText({ label, hint, field, draft, problems, change }: LongTextProps) {
  return (
    <Textarea
      label={label}
      description={hint}
      autosize
      minRows={2}
      maxRows={14}
      value={draft[field] ?? ''}
      error={at(problems, field)}
      onChange={(event) => change({ [field]: event.currentTarget.value || null })}
    />
  );
}
