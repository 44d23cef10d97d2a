// A plan as a form: criteria and what scores them, what must be reached, and where records have their fields.
import { Button, Group, NumberInput, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import type { Problem } from '../../api/client';
import { at } from '../../editing/problems';
import { RowButtons } from '../../editing/RowButtons';
import { Section } from '../../editing/Section';
import { useRows } from '../../editing/useRows';
import { EvaluatorsSection } from '../scenarios/EvaluatorsSection';
import { ScalesSection } from '../scenarios/ScalesSection';
import {
  criteriaOf,
  evaluatorsOf,
  fieldsOf,
  filled,
  type Plan,
  thresholdsOf,
  withCriteria,
  withEvaluators,
  withThreshold,
} from './plan';
import type { PlanEditing } from './usePlan';

type Part = { plan: Plan; problems: Problem[]; onChange: (plan: Plan) => void };

export function PlanForm({ editing }: { editing: PlanEditing }) {
  const { plan, setPlan } = editing;
  const problems = editing.problems.map(({ path, message, hint }) => ({
    path: path.replace(/^evaluatorConfigs/, 'evaluators'),
    message: hint ? `${message}; ${hint}` : message,
  }));
  const part = { plan, problems, onChange: setPlan };
  return (
    <Stack gap="md">
      <ScalesSection
        hint="Named qualities that evaluators score. Their weighted mean is the overall score."
        editor={{
          draft: { criteria: criteriaOf(plan) },
          change: ({ criteria }) => setPlan(withCriteria(plan, criteria)),
          problems,
        }}
      />
      <EvaluatorsSection
        gated={false}
        hint="Assertions decide whether a record passes; metrics only measure."
        none="None yet. A plan needs at least one."
        editor={{
          draft: { evaluators: evaluatorsOf(plan) },
          change: ({ evaluators }) => setPlan(withEvaluators(plan, evaluators)),
          problems,
        }}
      />
      <Limits {...part} />
      <Fields {...part} />
    </Stack>
  );
}

function Limits({ plan, problems, onChange }: Part) {
  const thresholds = thresholdsOf(plan);
  const names = criteriaOf(plan)
    .map((one) => one.name)
    .filter(Boolean);
  return (
    <Section title="What must be reached" hint="Means from 0 to 1. Below one of them the scoring is missed.">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <ShareInput
          label="Overall score"
          description="The lowest acceptable mean over all records"
          value={plan.failUnder as number | undefined}
          error={at(problems, 'failUnder')}
          onChange={(least) => onChange(filled({ ...plan, failUnder: least }))}
        />
        {names.map((name) => (
          <ShareInput
            key={name}
            label={name}
            description="The lowest acceptable mean of this criterion"
            value={thresholds[name]}
            error={at(problems, `thresholds.${name}`)}
            onChange={(least) => onChange(withThreshold(plan, name, least))}
          />
        ))}
      </SimpleGrid>
    </Section>
  );
}

type ShareInputProps = {
  label: string;
  description: string;
  value: number | undefined;
  error?: string;
  onChange: (value: number | undefined) => void;
};

function ShareInput({ value, onChange, ...props }: ShareInputProps) {
  return (
    <NumberInput
      clampBehavior="none"
      {...props}
      min={0}
      max={1}
      step={0.05}
      decimalScale={4}
      placeholder="Not required"
      value={typeof value === 'number' ? value : ''}
      onChange={(next) => onChange(next === '' ? undefined : Number(next))}
    />
  );
}

const TARGETS = [
  'id',
  'prompt',
  'response',
  'groundTruth',
  'context',
  'messageHistory',
  'agentId',
  'sessionId',
  'metadata',
  'latencyMs',
  'tokensUsage',
  'timestamp',
  'agentConfig',
];

function Fields({ plan, problems, onChange }: Part) {
  const fields = fieldsOf(plan);
  const rows = useRows(fields, (next) => onChange(filled({ ...plan, fields: Object.fromEntries(next) })));
  const unused = TARGETS.find((target) => !fields.some(([name]) => name === target)) ?? '';
  return (
    <Section
      title="Records"
      hint="Rows whose columns are called id, prompt, response and groundTruth need no mapping."
    >
      <TextInput
        label="Summarise by"
        description="agentId, sessionId or a field of the records' metadata; empty for no groups"
        value={typeof plan.groupBy === 'string' ? plan.groupBy : ''}
        error={at(problems, 'groupBy')}
        onChange={(event) => onChange(filled({ ...plan, groupBy: event.currentTarget.value }))}
      />
      {fields.length > 0 && (
        <Text size="xs" c="dimmed">
          Each field of a record, and the column or path of a row that holds it
        </Text>
      )}
      {fields.map(([target, place], index) => (
        <Group key={rows.keys[index]} gap="xs" wrap="nowrap" align="flex-start">
          <Select
            aria-label={`Field ${index + 1}`}
            flex={1}
            data={[...new Set([...TARGETS, target])]}
            value={target}
            allowDeselect={false}
            error={at(problems, `fields.${target}`)}
            onChange={(next) => next && rows.set(index, [next, place])}
          />
          <TextInput
            aria-label={`Column of field ${index + 1}`}
            flex={1}
            placeholder="Column, or a path such as input.question"
            value={place}
            onChange={(event) => rows.set(index, [target, event.currentTarget.value])}
          />
          <RowButtons what={`field ${index + 1}`} ordered={false} onRemove={() => rows.remove(index)} />
        </Group>
      ))}
      <Group>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          disabled={!unused}
          onClick={() => rows.add([unused, ''])}
        >
          Map a field
        </Button>
      </Group>
    </Section>
  );
}
