// Editing a connector: which agent, and how it is reached.
import { Alert, Badge, Select, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { client, dataOf, type Schemas } from '../../api/client';
import {
  connectorTypesQuery,
  createConnector,
  deleteConnector,
  updateConnector,
} from '../../api/definitions';
import { invalidate } from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { HeadersEditor } from '../../editing/HeadersEditor';
import { NameField } from '../../editing/NameFields';
import { at, under } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { type Editor, type StoredFields, useEditor } from '../../editing/useEditor';
import { ConfigForm } from '../../forms/ConfigForm';
import { isEmptySchema } from '../../forms/schema';
import { Loading } from '../../parts/Loading';
import { notify } from '../../parts/notifications';
import { ConnectorTester } from './ConnectorTester';

type Stored = Schemas['StoredConnector'];
type Draft = Omit<Stored, keyof StoredFields>;
type Type = Schemas['ConnectorType'];

const BLANK: Draft = { name: '', type: 'http', baseUrl: null, headers: {}, config: {} };
const SHELF = {
  read: (id: string) => dataOf(client.GET('/api/connectors/{id}', { params: { path: { id } } })),
  create: createConnector,
  update: updateConnector,
};

export function ConnectorEditor({ connector }: { connector?: Stored }) {
  const types = useQuery(connectorTypesQuery);
  // What a type says of itself is there from the start, so that nothing moves when it comes.
  return types.isPending ? <Loading /> : <Fields connector={connector} />;
}

function Fields({ connector }: { connector?: Stored }) {
  const navigate = useNavigate();
  const editor = useEditor<Draft, Stored>(SHELF, connector, BLANK, (saved, isNew) => {
    void invalidate(['connectors']);
    notify(`Saved "${saved.name}"`);
    if (isNew) {
      void navigate({
        to: '/connectors/$connectorId',
        params: { connectorId: saved.id },
        ignoreBlocker: true,
      });
    }
  });
  return (
    <EditorFrame editor={editor} noun="connector" stored={connector} onDelete={deleteConnector}>
      <AgentSection editor={editor} />
      <Section title="Headers" hint="Sent with every call.">
        <HeadersEditor
          value={editor.draft.headers}
          problems={editor.problems}
          onChange={(headers) => editor.change({ headers })}
        />
      </Section>
      <SettingsSection editor={editor} />
      {connector && <ConnectorTester id={connector.id} unsaved={editor.dirty} />}
    </EditorFrame>
  );
}

function useType(type: string): { types: Type[]; known: Type | undefined; loaded: boolean } {
  const { data } = useQuery(connectorTypesQuery);
  return { types: data ?? [], known: data?.find((one) => one.type === type), loaded: data !== undefined };
}

function AgentSection({ editor }: { editor: Editor<Draft> }) {
  const { draft, change, problems } = editor;
  const { types, known, loaded } = useType(draft.type);
  const options = types.map(({ type, label }) => ({ value: type, label }));
  return (
    <Section title="Agent">
      <NameField
        hint="What evals and results call this agent"
        draft={draft}
        change={change}
        problems={problems}
      />
      <Select
        label="Type"
        description="How messages get to the agent"
        required
        allowDeselect={false}
        data={loaded && !known ? [...options, { value: draft.type, label: draft.type }] : options}
        value={draft.type}
        error={at(problems, 'type')}
        // Settings belong to a type: those of another one would be refused.
        onChange={(type) => type && type !== draft.type && change({ type, config: {} })}
      />
      {known && (
        <Text size="sm" c="dimmed">
          {known.description} {!known.builtin && <Badge variant="default">{known.source}</Badge>}
        </Text>
      )}
      {loaded && !known && (
        <Alert color="orange" title="This type is not registered here">
          The plugin that brought "{draft.type}" is not loaded. See Settings for what is.
        </Alert>
      )}
      <TextInput
        label="Address"
        description="Where the agent is reached, if this type needs one"
        placeholder="https://agent.example.com"
        type="url"
        value={draft.baseUrl ?? ''}
        error={at(problems, 'baseUrl')}
        onChange={(event) => change({ baseUrl: event.currentTarget.value || null })}
      />
    </Section>
  );
}

function SettingsSection({ editor }: { editor: Editor<Draft> }) {
  const { draft, change, problems } = editor;
  const { known } = useType(draft.type);
  if (!known || isEmptySchema(known.configSchema)) return null;
  return (
    <Section title="Settings" hint={`What a connector of type ${known.label} can be told.`}>
      <ConfigForm
        key={draft.type}
        id="config"
        schema={known.configSchema}
        value={draft.config}
        problems={under(problems, 'config')}
        onChange={(config) => change({ config })}
      />
    </Section>
  );
}
