// Editing a monitor: which conversations, what judges them, the band, and who is told.
import { NumberInput, Select, Switch, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import { scenariosQuery } from '../../api/definitions';
import {
  createMonitor,
  deleteMonitor,
  readMonitor,
  type StoredMonitor,
  updateMonitor,
} from '../../api/monitors';
import { invalidate } from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { DescriptionField, NameField } from '../../editing/NameFields';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { type StoredFields, useEditor } from '../../editing/useEditor';
import { notify } from '../../parts/notifications';
import type { Criterion } from '../scenarios/draft';
import { EvaluatorsSection } from '../scenarios/EvaluatorsSection';
import { ScalesSection } from '../scenarios/ScalesSection';
import { AlarmSection, BandSection } from './AlarmSections';
import { FilterSection } from './FilterSection';

type Stored = StoredMonitor;
export type Draft = Omit<Stored, keyof StoredFields>;

const BLANK: Draft = {
  name: '',
  description: null,
  enabled: true,
  filter: [],
  samplingRate: 1,
  scenarioIds: [],
  successCriteria: null,
  failureCriteria: null,
  evaluators: [],
  criteria: [],
  judgeCallsPerDay: null,
  retentionDays: 90,
  band: { expected: null, learnFrom: 500, minEffect: 0.05, maxErrorRate: 0.05, falseAlarmsPerMonth: 0.1 },
  alarm: { webhook: null, log: true, quietHours: 24 },
};
const SHELF = {
  read: readMonitor,
  create: (body: Draft) => createMonitor(body as Schemas['Monitor']),
  update: (id: string, version: number, body: Draft) =>
    updateMonitor(id, version, body as Schemas['Monitor']),
};
type Change = (patch: Partial<Draft>) => void;
export type Part = { draft: Draft; change: Change; problems: Parameters<typeof at>[0] };

export function MonitorEditor({ monitor }: { monitor?: Stored }) {
  const navigate = useNavigate();
  const editor = useEditor<Draft, Stored>(SHELF, monitor, BLANK, (saved) => {
    void invalidate(['monitors']);
    notify(`Saved "${saved.name}"`);
    void navigate({ to: '/monitors/$monitorId', params: { monitorId: saved.id }, ignoreBlocker: true });
  });
  const { draft, change, problems } = editor;
  const part = { draft, change, problems };
  return (
    <EditorFrame
      editor={editor}
      noun="monitor"
      stored={monitor}
      onDelete={deleteMonitor}
      consequence="Its series and alarms go with it; its executions stay. This cannot be undone."
    >
      <Basics {...part} />
      <FilterSection {...part} />
      <Judges {...part} />
      {draft.scenarioIds.length === 0 && (
        <>
          <EvaluatorsSection
            editor={{ draft, change, problems }}
            hint="Assertions decide whether a conversation passes; metrics only measure."
            none="None. A monitor judges as a scenario does, or by criteria and evaluators of its own."
          />
          <ScalesSection editor={{ draft: { criteria: draft.criteria as Criterion[] }, change, problems }} />
        </>
      )}
      <BandSection {...part} />
      <AlarmSection {...part} />
    </EditorFrame>
  );
}

function Basics({ draft, change, problems }: Part) {
  return (
    <Section title="Basics">
      <NameField hint="What lists and alarms call it" draft={draft} change={change} problems={problems} />
      <DescriptionField
        hint="What is watched, in a few words"
        draft={draft}
        change={change}
        problems={problems}
      />
      <Switch
        label="Conversations are reviewed"
        description="Switched off, it keeps its series and reviews nothing new"
        checked={draft.enabled}
        onChange={(event) => change({ enabled: event.currentTarget.checked })}
      />
    </Section>
  );
}

const CRITERIA = [
  {
    key: 'successCriteria',
    label: 'Success criteria',
    description: 'When a conversation has succeeded; a judge is asked',
  },
  {
    key: 'failureCriteria',
    label: 'Failure criteria',
    description: 'When a conversation has failed; a judge is asked',
  },
] as const;

function Judges({ draft, change, problems }: Part) {
  const scenarios = useQuery(scenariosQuery);
  const own = draft.scenarioIds.length === 0;
  return (
    <Section
      title="What judges them"
      hint="As a scenario does, or by criteria and evaluators of its own: one of the two."
    >
      <Select
        label="As this scenario"
        description="Its criteria and evaluators; empty to give the monitor its own"
        placeholder="None"
        searchable
        clearable
        data={(scenarios.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        value={draft.scenarioIds[0] ?? null}
        error={at(problems, 'scenarioIds') ?? at(problems, '')}
        onChange={(id) => change({ scenarioIds: id ? [id] : [] })}
      />
      {own &&
        CRITERIA.map(({ key, label, description }) => (
          <Textarea
            key={key}
            label={label}
            description={description}
            autosize
            minRows={2}
            value={draft[key] ?? ''}
            error={at(problems, key)}
            onChange={(event) => change({ [key]: event.currentTarget.value || null })}
          />
        ))}
      <NumberInput
        label="Judge calls per day"
        description="What comes beyond it is counted as not judged; empty for no limit"
        placeholder="No limit"
        min={0}
        allowDecimal={false}
        styles={{ wrapper: { maxWidth: 320 } }}
        value={draft.judgeCallsPerDay ?? ''}
        error={at(problems, 'judgeCallsPerDay')}
        onChange={(value) => change({ judgeCallsPerDay: value === '' ? null : Number(value) })}
      />
    </Section>
  );
}
