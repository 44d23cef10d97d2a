// Who speaks, and for how long.
import { MultiSelect, NumberInput, Switch, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { personasQuery } from '../../api/definitions';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { PageLink } from '../../parts/links';
import type { ScenarioEditing } from './draft';

export function PersonasSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  const personas = useQuery(personasQuery);
  const known = personas.data ?? [];
  const gone = personas.data ? draft.personaIds.filter((id) => !known.some((one) => one.id === id)) : [];
  const options = [
    ...known.map(({ id, name }) => ({ value: id, label: name })),
    ...gone.map((id) => ({ value: id, label: `Deleted persona ${id}` })),
  ];
  return (
    <Section title="Personas and limits">
      <MultiSelect
        label="Personas"
        description="The scenario runs once with each of them"
        placeholder={draft.personaIds.length > 0 ? undefined : 'No one in particular'}
        searchable
        data={options}
        value={draft.personaIds}
        error={at(problems, 'personaIds')}
        onChange={(personaIds) => change({ personaIds })}
      />
      {personas.data?.length === 0 && (
        <Text size="sm">
          There are no personas yet.{' '}
          <PageLink to="/personas/new" target="_blank" underline="always">
            Make one in a new tab
          </PageLink>
          .
        </Text>
      )}
      <NumberInput
        label="Most messages"
        description="User messages and replies of one run, seeds not counted. Empty: what the script needs, or 10"
        placeholder="as long as needed"
        min={1}
        max={1000}
        allowDecimal={false}
        w={{ base: '100%', xs: 280 }}
        value={draft.maxMessages ?? ''}
        error={at(problems, 'maxMessages')}
        onChange={(value) => change({ maxMessages: Number(value) || null })}
      />
      <Switch
        label="Stop at the first failure"
        description="End the conversation as soon as an assertion that must always hold does not"
        checked={draft.stopOnFailure}
        onChange={(event) => change({ stopOnFailure: event.currentTarget.checked })}
      />
    </Section>
  );
}
