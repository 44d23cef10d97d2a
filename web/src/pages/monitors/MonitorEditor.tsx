// Editing a monitor: which conversations, what judges them, the band, and who is told.
import { NumberInput, Select, Switch, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import {
  createMonitor,
  deleteMonitor,
  invalidate,
  readMonitor,
  type StoredMonitor,
  scenariosQuery,
  updateMonitor,
} from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { type StoredFields, useEditor } from '../../editing/useEditor';
import { JsonBox } from '../../forms/JsonField';
import { notify } from '../../parts/notifications';

type Stored = StoredMonitor;
type Draft = Omit<Stored, keyof StoredFields>;

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
type Part = { draft: Draft; change: Change; problems: Parameters<typeof at>[0] };

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
      <Which {...part} />
      <Judges {...part} />
      <Section title="Band and alarms" hint="When the rate counts as having left its band, and who is told.">
        <JsonBox
          id="band"
          label="Band"
          description="expected, learnFrom, minEffect, maxErrorRate, falseAlarmsPerMonth"
          value={draft.band}
          error={at(problems, 'band')}
          onChange={(value) => change({ band: (value ?? {}) as Draft['band'] })}
        />
        <JsonBox
          id="alarm"
          label="Alarm"
          description='webhook {"url", "secret"}, log, quietHours'
          value={draft.alarm}
          error={at(problems, 'alarm')}
          onChange={(value) => change({ alarm: (value ?? {}) as Draft['alarm'] })}
        />
      </Section>
    </EditorFrame>
  );
}

function Which({ draft, change, problems }: Part) {
  return (
    <Section title="Which conversations">
      <TextInput
        label="Name"
        required
        value={draft.name}
        error={at(problems, 'name')}
        onChange={(event) => change({ name: event.currentTarget.value })}
      />
      <TextInput
        label="Description"
        value={draft.description ?? ''}
        error={at(problems, 'description')}
        onChange={(event) => change({ description: event.currentTarget.value || null })}
      />
      <Switch
        label="Conversations are reviewed"
        checked={draft.enabled}
        onChange={(event) => change({ enabled: event.currentTarget.checked })}
      />
      <JsonBox
        id="filter"
        label="Filter"
        description='All of these must hold: [{"attribute": "gen_ai.agent.name", "equals": "booking"}]; also in, prefix, exists'
        value={draft.filter}
        error={at(problems, 'filter')}
        onChange={(value) => change({ filter: (value ?? []) as Draft['filter'] })}
      />
      <NumberInput
        label="Sampling rate"
        description="The share that is reviewed, from 0 to 1, chosen by the conversation's id"
        min={0}
        max={1}
        step={0.05}
        value={draft.samplingRate}
        error={at(problems, 'samplingRate')}
        onChange={(value) => change({ samplingRate: Number(value) })}
      />
      <NumberInput
        label="Days that reviews are kept"
        min={1}
        value={draft.retentionDays}
        error={at(problems, 'retentionDays')}
        onChange={(value) => change({ retentionDays: Number(value) })}
      />
    </Section>
  );
}

function Judges({ draft, change, problems }: Part) {
  const scenarios = useQuery(scenariosQuery);
  return (
    <Section title="What judges them" hint="As a scenario does, or by criteria and evaluators of its own.">
      <Select
        label="As this scenario"
        searchable
        clearable
        data={(scenarios.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        value={draft.scenarioIds[0] ?? null}
        error={at(problems, 'scenarioIds')}
        onChange={(id) => change({ scenarioIds: id ? [id] : [] })}
      />
      <Textarea
        label="Success criteria"
        description="When a conversation has succeeded; a judge is asked"
        autosize
        value={draft.successCriteria ?? ''}
        error={at(problems, 'successCriteria')}
        onChange={(event) => change({ successCriteria: event.currentTarget.value || null })}
      />
      <JsonBox
        id="evaluators"
        label="Evaluators"
        description='[{"type": "regex", "config": {"pattern": "thank you"}}]'
        value={draft.evaluators}
        error={at(problems, 'evaluators')}
        onChange={(value) => change({ evaluators: (value ?? []) as Draft['evaluators'] })}
      />
      <NumberInput
        label="Judge calls per day"
        description="Beyond it conversations are counted as not judged; empty for no limit"
        min={0}
        value={draft.judgeCallsPerDay ?? ''}
        error={at(problems, 'judgeCallsPerDay')}
        onChange={(value) => change({ judgeCallsPerDay: value === '' ? null : Number(value) })}
      />
    </Section>
  );
}
