// Runs the scenario once beside its editor and shows what happens as it happens.
import { Button, Drawer, Select, Stack, Text, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Schemas } from '../../api/client';
import { connectorsQuery, personasQuery } from '../../api/definitions';
import { startRun } from '../../api/runs';
import { ErrorState } from '../../parts/ErrorState';
import { PageLink } from '../../parts/links';
import type { ScenarioEditing, StoredScenario } from './draft';
import { TrialRun } from './TrialRun';

type TrialPanelProps = {
  scenario: StoredScenario;
  editor: ScenarioEditing;
  opened: boolean;
  onClose: () => void;
};

export function TrialPanel({ scenario, editor, opened, onClose }: TrialPanelProps) {
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      position="right"
      size="lg"
      title="Try it"
      withOverlay={false}
      lockScroll={false}
      trapFocus={false}
    >
      <TryForm scenario={scenario} editor={editor} />
    </Drawer>
  );
}

function TryForm({ scenario, editor }: Pick<TrialPanelProps, 'scenario' | 'editor'>) {
  const connectors = useQuery(connectorsQuery);
  const [lastUsed, setLastUsed] = useLocalStorage<string | null>({
    key: 'evalstudio-try',
    defaultValue: null,
  });
  const [persona, setPersona] = useState<string | null>(scenario.personaIds[0] ?? null);
  const [chosenCase, setChosenCase] = useState<string | null>(null);
  const known = connectors.data ?? [];
  const connector = known.find((one) => one.id === lastUsed)?.id ?? known[0]?.id ?? null;
  const caseName = chosenCase ?? firstCase(editor.draft.cases);
  const start = useMutation({
    mutationFn: async () => {
      if (!connector || (editor.dirty && !(await editor.save()))) return null;
      return startRun({ scenarioId: scenario.id, connectorId: connector, personaId: persona, caseName });
    },
  });
  const run = start.data?.runs[0];
  return (
    <Stack
      gap="sm"
      component="form"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        if (connector && !start.isPending) start.mutate();
      }}
    >
      <Select
        label="Connector"
        description="The agent that is talked to"
        data={known.map(({ id, name }) => ({ value: id, label: name }))}
        value={connector}
        onChange={setLastUsed}
        allowDeselect={false}
        placeholder={connectors.data ? 'There are no connectors yet' : 'Loading'}
        disabled={known.length === 0}
      />
      {connectors.data?.length === 0 && (
        <Text size="sm">
          A connector says how the agent is reached.{' '}
          <PageLink to="/connectors/new" underline="always">
            Make one
          </PageLink>{' '}
          first.
        </Text>
      )}
      <PersonaSelect value={persona} onChange={setPersona} />
      <CaseSelect cases={editor.draft.cases} value={caseName} onChange={setChosenCase} />
      <Button
        leftSection={<IconPlayerPlay size={16} />}
        loading={start.isPending}
        disabled={!connector}
        type="submit"
      >
        {editor.dirty ? 'Save and run' : 'Run'}
      </Button>
      {start.error && <ErrorState error={start.error} />}
      {run && <TrialRun key={run.id} started={run} />}
    </Stack>
  );
}

function PersonaSelect({ value, onChange }: { value: string | null; onChange: (id: string | null) => void }) {
  const { data } = useQuery(personasQuery);
  if (!data?.length) return null;
  return (
    <Select
      label="Persona"
      description="Who the simulated user is, in this try only"
      data={data.map(({ id, name }) => ({ value: id, label: name }))}
      value={value}
      onChange={onChange}
      clearable
      clearButtonProps={{ 'aria-label': 'No persona' }}
      placeholder="The scenario's own"
    />
  );
}

type Cases = Schemas['StoredScenario']['cases'];

function caseNames(cases: Schemas['Case'][]): string[] {
  return cases.map((one, index) => one.name || `case ${index + 1}`);
}

/** One case is tried, not all of them: a file may hold thousands. */
function firstCase(cases: Cases): string | null {
  return typeof cases === 'string' ? 'case 1' : (caseNames(cases)[0] ?? null);
}

type CaseSelectProps = { cases: Cases; value: string | null; onChange: (name: string | null) => void };

function CaseSelect({ cases, value, onChange }: CaseSelectProps) {
  if (typeof cases === 'string') {
    return (
      <TextInput
        label="Case"
        description="The name of a case in the file, or its number such as case 1"
        value={value ?? ''}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  if (cases.length === 0) return null;
  return (
    <Select
      label="Case"
      description="The values that are filled in"
      data={caseNames(cases)}
      value={value}
      onChange={onChange}
      allowDeselect={false}
    />
  );
}
