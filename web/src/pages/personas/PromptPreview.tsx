// What a model that plays this persona is told, for one of the scenarios.
import { Select, Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { client, dataOf, type Schemas } from '../../api/client';
import { scenariosQuery } from '../../api/definitions';
import { Section } from '../../editing/Section';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import classes from './PromptPreview.module.css';

const promptQuery = (id: string, persona: Schemas['StoredPersona']) =>
  queryOptions({
    queryKey: ['scenarios', id, 'prompt', persona.id, persona.version],
    queryFn: () =>
      dataOf(
        client.GET('/api/scenarios/{id}/prompt', {
          params: { path: { id }, query: { personaId: persona.id } },
        }),
      ),
  });

export function PromptPreview({ persona }: { persona: Schemas['StoredPersona'] }) {
  const scenarios = useQuery(scenariosQuery);
  const [chosen, setChosen] = useState<string | null>(null);
  const all = scenarios.data ?? [];
  const scenario = chosen ?? all.find((one) => one.personaIds.includes(persona.id))?.id ?? all[0]?.id;
  return (
    <Section title="Simulator prompt" hint="What the model that plays this persona is told, as it was saved.">
      <Select
        label="In scenario"
        description="Whose instructions the prompt is shown with"
        searchable
        data={all.map(({ id, name }) => ({ value: id, label: name }))}
        value={scenario ?? null}
        onChange={setChosen}
        allowDeselect={false}
        placeholder={scenarios.data ? 'There are no scenarios yet' : 'Loading'}
        disabled={all.length === 0}
      />
      {scenario && <Prompt scenarioId={scenario} persona={persona} />}
    </Section>
  );
}

function Prompt({ scenarioId, persona }: { scenarioId: string; persona: Schemas['StoredPersona'] }) {
  const prompt = useQuery(promptQuery(scenarioId, persona));
  if (prompt.error) return <ErrorState error={prompt.error} onRetry={() => void prompt.refetch()} />;
  if (!prompt.data) return <Loading rows={3} />;
  return (
    <Text component="pre" size="sm" className={classes.prompt}>
      {prompt.data.prompt}
    </Text>
  );
}
