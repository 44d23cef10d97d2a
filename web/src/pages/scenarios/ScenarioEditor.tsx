// Editing a scenario, and trying it.
import { Button } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { client, dataOf } from '../../api/client';
import { createScenario, deleteScenario, invalidate, updateScenario } from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { useEditor } from '../../editing/useEditor';
import { notify } from '../../parts/notifications';
import { BasicsSection } from './BasicsSection';
import { CasesSection } from './CasesSection';
import { ConversationSection } from './ConversationSection';
import { CriteriaSection } from './CriteriaSection';
import { asStored, BLANK, type Draft, type StoredScenario } from './draft';
import { EvaluatorsSection } from './EvaluatorsSection';
import { PersonasSection } from './PersonasSection';
import { ReferenceSection } from './ReferenceSection';
import { ScalesSection } from './ScalesSection';
import { TrialPanel } from './TrialPanel';

const SHELF = {
  read: async (id: string) =>
    asStored(await dataOf(client.GET('/api/scenarios/{id}', { params: { path: { id } } }))),
  create: async (body: Draft) => asStored(await createScenario(body)),
  update: async (id: string, version: number, body: Draft) =>
    asStored(await updateScenario(id, version, body)),
};

export function ScenarioEditor({ scenario }: { scenario?: StoredScenario }) {
  const navigate = useNavigate();
  const [trying, setTrying] = useState(false);
  const editor = useEditor<Draft, StoredScenario>(SHELF, scenario, BLANK, (saved, isNew) => {
    void invalidate(['scenarios']);
    notify(`Saved "${saved.name}"`);
    if (isNew) {
      void navigate({ to: '/scenarios/$scenarioId', params: { scenarioId: saved.id }, ignoreBlocker: true });
    }
  });
  const tryIt = scenario && (
    <Button variant="default" leftSection={<IconPlayerPlay size={16} />} onClick={() => setTrying(true)}>
      Try it
    </Button>
  );
  return (
    <EditorFrame editor={editor} noun="scenario" stored={scenario} onDelete={deleteScenario} actions={tryIt}>
      <BasicsSection editor={editor} />
      <ConversationSection editor={editor} />
      <CasesSection editor={editor} />
      <PersonasSection editor={editor} />
      <CriteriaSection editor={editor} />
      <EvaluatorsSection editor={editor} />
      <ScalesSection editor={editor} />
      <ReferenceSection editor={editor} />
      {scenario && (
        <TrialPanel scenario={scenario} editor={editor} opened={trying} onClose={() => setTrying(false)} />
      )}
    </EditorFrame>
  );
}
