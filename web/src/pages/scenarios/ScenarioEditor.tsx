// Editing a scenario, and trying it.
import { Button, SegmentedControl, Stack } from '@mantine/core';
import { IconCopy, IconPlayerPlay } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { client, dataOf } from '../../api/client';
import { createScenario, deleteScenario, updateScenario } from '../../api/definitions';
import { invalidate } from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { bodyOf, useEditor } from '../../editing/useEditor';
import { notify, notifyProblem } from '../../parts/notifications';
import { useSearchParam } from '../../parts/useSearchParam';
import { BasicsSection } from './BasicsSection';
import { CasesSection } from './CasesSection';
import { ConversationSection } from './ConversationSection';
import { CriteriaSection } from './CriteriaSection';
import { asStored, BLANK, type Draft, type StoredScenario } from './draft';
import { EvaluatorsSection } from './EvaluatorsSection';
import { PersonasSection } from './PersonasSection';
import { ReferenceSection } from './ReferenceSection';
import { ScalesSection } from './ScalesSection';
import { ScenarioResults } from './ScenarioResults';
import { ScenarioYaml } from './ScenarioYaml';
import { SectionIndex } from './SectionIndex';
import { TrialPanel } from './TrialPanel';

const SHELF = {
  read: async (id: string) =>
    asStored(await dataOf(client.GET('/api/scenarios/{id}', { params: { path: { id } } }))),
  create: async (body: Draft) => asStored(await createScenario(body)),
  update: async (id: string, version: number, body: Draft) =>
    asStored(await updateScenario(id, version, body)),
};

const VIEWS = [
  { value: 'edit', label: 'Edit' },
  { value: 'results', label: 'Results' },
  { value: 'yaml', label: 'YAML' },
] as const;

interface Props {
  scenario?: StoredScenario;
  /** What a new scenario begins with */
  proposed?: Draft;
}

export function ScenarioEditor({ scenario, proposed }: Props) {
  const navigate = useNavigate();
  const [trying, setTrying] = useState(false);
  const saved = (one: StoredScenario, isNew: boolean) => {
    void invalidate(['scenarios']);
    notify(`Saved "${one.name}"`);
    if (isNew) {
      void navigate({ to: '/scenarios/$scenarioId', params: { scenarioId: one.id }, ignoreBlocker: true });
    }
  };
  const editor = useEditor<Draft, StoredScenario>(SHELF, scenario, BLANK, saved, proposed);
  const [tab, setTab] = useSearchParam('view');
  const view = VIEWS.find((one) => one.value === tab)?.value ?? 'edit';
  const setView = (next: string) => setTab(next === 'edit' ? '' : next);
  const tryIt = scenario && (
    <>
      <DuplicateButton scenario={scenario} />
      <Button variant="default" leftSection={<IconPlayerPlay size={16} />} onClick={() => setTrying(true)}>
        Try it
      </Button>
    </>
  );
  return (
    <EditorFrame
      editor={editor}
      noun="scenario"
      stored={scenario}
      onDelete={deleteScenario}
      actions={tryIt}
      editing={view === 'edit'}
    >
      {scenario && <Views view={view} onChange={setView} />}
      {scenario && view === 'results' && <ScenarioResults scenarioId={scenario.id} />}
      {scenario && view === 'yaml' && <ScenarioYaml scenarioId={scenario.id} unsaved={editor.dirty} />}
      {/* What was typed stays while another view is shown. */}
      <Stack gap="md" display={view === 'edit' ? undefined : 'none'}>
        <SectionIndex />
        <BasicsSection editor={editor} />
        <ConversationSection editor={editor} />
        <CasesSection editor={editor} />
        <PersonasSection editor={editor} />
        <CriteriaSection editor={editor} />
        <EvaluatorsSection editor={editor} />
        <ScalesSection editor={editor} />
        <ReferenceSection editor={editor} />
      </Stack>
      {scenario && (
        <TrialPanel scenario={scenario} editor={editor} opened={trying} onClose={() => setTrying(false)} />
      )}
    </EditorFrame>
  );
}

function Views({ view, onChange }: { view: string; onChange: (view: string) => void }) {
  return (
    <SegmentedControl
      aria-label="What is shown of the scenario"
      data={[...VIEWS]}
      value={view}
      onChange={onChange}
      w={{ base: '100%', xs: 320 }}
    />
  );
}

function DuplicateButton({ scenario }: { scenario: StoredScenario }) {
  const navigate = useNavigate();
  const duplicate = useMutation({
    mutationFn: () => createScenario({ ...bodyOf<Draft>(scenario), name: `${scenario.name} (copy)` }),
    onError: notifyProblem,
    onSuccess: (made) => {
      void invalidate(['scenarios']);
      notify(`Made "${made.name}"`);
      void navigate({ to: '/scenarios/$scenarioId', params: { scenarioId: made.id } });
    },
  });
  return (
    <Button
      variant="default"
      leftSection={<IconCopy size={16} aria-hidden />}
      loading={duplicate.isPending}
      onClick={() => duplicate.mutate()}
    >
      Duplicate
    </Button>
  );
}
