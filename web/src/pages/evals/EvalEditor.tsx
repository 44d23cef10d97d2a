// Making or changing an eval: its name, scenarios, connectors and how often each combination runs.
import { MultiSelect, NumberInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { client, dataOf, type Problem, type Schemas } from '../../api/client';
import { connectorsQuery, createEval, deleteEval, scenariosQuery, updateEval } from '../../api/definitions';
import { invalidate } from '../../api/queries';
import { EditorFrame } from '../../editing/EditorFrame';
import { NameField } from '../../editing/NameFields';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { type StoredFields, useEditor } from '../../editing/useEditor';
import { notify } from '../../parts/notifications';
import { RequirementsEditor } from './RequirementsEditor';
import type { Requirement } from './requirements';

type Stored = Schemas['StoredEval'];
type Draft = Omit<Stored, keyof StoredFields>;

const BLANK: Draft = {
  name: '',
  scenarioIds: [],
  connectorIds: [],
  repetitions: null,
  requirements: [],
  budget: null,
};
const SHELF = {
  read: (id: string) => dataOf(client.GET('/api/evals/{id}', { params: { path: { id } } })),
  create: createEval,
  update: updateEval,
};

export function EvalEditor({ evaluation }: { evaluation?: Stored }) {
  const navigate = useNavigate();
  const scenarios = useQuery(scenariosQuery);
  const connectors = useQuery(connectorsQuery);
  const editor = useEditor<Draft, Stored>(SHELF, evaluation, BLANK, (saved) => {
    void invalidate(['evals'], ['stats']);
    notify(`Saved "${saved.name}"`);
    void navigate({ to: '/evals/$evalId', params: { evalId: saved.id }, ignoreBlocker: true });
  });
  const { draft, change, problems } = editor;
  return (
    <EditorFrame
      editor={editor}
      noun="eval"
      stored={evaluation}
      onDelete={deleteEval}
      consequence="Its executions stay and can still be read. This cannot be undone."
    >
      <Section title="What is tested">
        <NameField
          hint="What executions and trends are listed under"
          draft={draft}
          change={change}
          problems={problems}
        />
        <Choice
          label="Scenarios"
          description="What the agent is tried with"
          field="scenarioIds"
          items={scenarios.data ?? []}
          value={draft.scenarioIds}
          error={at(problems, 'scenarioIds')}
          onChange={(scenarioIds) => change({ scenarioIds })}
        />
        <Choice
          label="Connectors"
          description="The agents; every scenario runs on each of them"
          field="connectorIds"
          items={connectors.data ?? []}
          value={draft.connectorIds}
          error={at(problems, 'connectorIds')}
          onChange={(connectorIds) => change({ connectorIds })}
        />
        <NumberInput
          label="Repetitions"
          description="How often each combination runs; several show what is flaky. Empty: the project's default"
          placeholder="project default"
          min={1}
          max={10_000}
          styles={{ wrapper: { maxWidth: 240 } }}
          value={draft.repetitions ?? ''}
          error={at(problems, 'repetitions')}
          onChange={(value) => change({ repetitions: Number(value) || null })}
        />
      </Section>
      <Requirements draft={draft} problems={problems} change={change} />
    </EditorFrame>
  );
}

interface RequirementsProps {
  draft: Draft;
  problems: Problem[];
  change: (fields: Partial<Draft>) => void;
}

const LIMITS = [
  ['maxCost', 'Most cost', 'US dollars, of agent, simulator and judges, where it is known'],
  ['maxTokens', 'Most tokens', 'Of agent, simulator and judges'],
  ['maxTime', 'Most time', 'Seconds from the start'],
] as const;

/** What an execution must reach to be met, and what it may use. */
function Requirements({ draft, problems, change }: RequirementsProps) {
  const stored = draft.requirements;
  const requirements = useMemo(() => (stored ?? []).map(withoutEmpty), [stored]);
  const limit = (name: (typeof LIMITS)[number][0], value: number | null) => {
    const budget = { ...draft.budget, [name]: value };
    change({ budget: LIMITS.some(([key]) => budget[key]) ? budget : null });
  };
  return (
    <Section title="What it must reach">
      <RequirementsEditor
        requirements={requirements}
        problems={problems}
        onChange={(next) => change({ requirements: next })}
      />
      {LIMITS.map(([name, label, description]) => (
        <NumberInput
          key={name}
          label={label}
          description={description}
          placeholder="no limit"
          min={0}
          styles={{ wrapper: { maxWidth: 240 } }}
          value={draft.budget?.[name] ?? ''}
          error={at(problems, `budget.${name}`)}
          onChange={(value) => limit(name, Number(value) || null)}
        />
      ))}
    </Section>
  );
}

/** The fields that are given; the server sends all of them. */
function withoutEmpty(requirement: Requirement): Requirement {
  return Object.fromEntries(Object.entries(requirement).filter(([, value]) => value !== null));
}

interface ChoiceProps {
  label: string;
  description: string;
  field: string;
  items: { id: string; name: string }[];
  value: string[];
  error?: string;
  onChange: (value: string[]) => void;
}

function Choice({ label, description, field, items, value, error, onChange }: ChoiceProps) {
  return (
    <MultiSelect
      label={label}
      description={description}
      name={field}
      required
      searchable
      data={items.map((item) => ({ value: item.id, label: item.name }))}
      value={value}
      error={error}
      onChange={onChange}
      placeholder={value.length === 0 ? 'Choose' : undefined}
      nothingFoundMessage={items.length === 0 ? `There are no ${label.toLowerCase()} yet` : 'Nothing matches'}
    />
  );
}
