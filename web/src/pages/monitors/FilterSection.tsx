// Which conversations a monitor is about: conditions on their attributes, and how many of them it reviews.
import { Button, Group, NumberInput, Select, SimpleGrid, TagsInput, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import type { Problem } from '../../api/client';
import { at, inside } from '../../editing/problems';
import { RowButtons } from '../../editing/RowButtons';
import { Section } from '../../editing/Section';
import { useRows } from '../../editing/useRows';
import { type Condition, scalarOf, TESTS, type Test, tested, testOf, textOf, textsOf } from './conditions';
import type { Part } from './MonitorEditor';

const NEW: Condition = { attribute: '', equals: '', in: null, prefix: null, exists: null };

export function FilterSection({ draft, change, problems }: Part) {
  const rows = useRows(draft.filter, (filter) => change({ filter }));
  return (
    <Section
      title="Which conversations"
      hint="Those of which every condition holds; without one, all that come in from production."
      action={
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          onClick={() => rows.add(NEW)}
        >
          Add condition
        </Button>
      }
    >
      {draft.filter.map((condition, index) => (
        <ConditionRow
          key={rows.keys[index]}
          number={index + 1}
          condition={condition}
          problem={inside(problems, `filter[${index}]`)}
          onChange={(next) => rows.set(index, next)}
          onRemove={() => rows.remove(index)}
        />
      ))}
      {draft.filter.length > 0 && (
        <Text size="xs" c="dimmed">
          Attributes are named as the telemetry has them. A number, true and false are read as such; in quotes
          they are text.
        </Text>
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          clampBehavior="none"
          label="Sampling rate"
          description="The share of them that is reviewed, from 0 to 1, chosen by the conversation's id"
          min={0}
          max={1}
          step={0.05}
          value={draft.samplingRate}
          error={at(problems, 'samplingRate')}
          onChange={(value) => change({ samplingRate: Number(value) })}
        />
        <NumberInput
          clampBehavior="none"
          label="Days that reviews are kept"
          description="With what was said; older ones are deleted"
          min={1}
          allowDecimal={false}
          value={draft.retentionDays}
          error={at(problems, 'retentionDays')}
          onChange={(value) => change({ retentionDays: Number(value) })}
        />
      </SimpleGrid>
    </Section>
  );
}

type RowProps = {
  number: number;
  condition: Condition;
  problem?: Problem['message'];
  onChange: (condition: Condition) => void;
  onRemove: () => void;
};

function ConditionRow({ number, condition, problem, onChange, onRemove }: RowProps) {
  const test = testOf(condition);
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap">
      <SimpleGrid cols={{ base: 1, xs: 3 }} flex={1} spacing="xs" verticalSpacing={4}>
        <TextInput
          aria-label={`Attribute of condition ${number}`}
          placeholder="Attribute, such as gen_ai.agent.name"
          value={condition.attribute}
          error={problem}
          onChange={(event) => onChange({ ...condition, attribute: event.currentTarget.value })}
        />
        <Select
          aria-label={`Test of condition ${number}`}
          data={TESTS}
          value={test}
          allowDeselect={false}
          onChange={(next) => next && onChange(tested(condition, next as Test))}
        />
        <Value number={number} test={test} condition={condition} onChange={onChange} />
      </SimpleGrid>
      <RowButtons what={`condition ${number}`} ordered={false} onRemove={onRemove} />
    </Group>
  );
}

type ValueProps = Pick<RowProps, 'number' | 'condition' | 'onChange'> & { test: Test };

function Value({ number, test, condition, onChange }: ValueProps) {
  const texts = textsOf(condition);
  // What is typed stays as it stands: "1." is on the way to a number.
  const [typed, setTyped] = useState(texts[0] ?? '');
  const label = `Value of condition ${number}`;
  if (test === 'exists' || test === 'absent') return null;
  if (test === 'in') {
    return (
      <TagsInput
        aria-label={label}
        placeholder={texts.length ? '' : 'Values, each with Enter'}
        value={texts}
        acceptValueOnBlur
        onChange={(next) => onChange({ ...condition, in: next.map(scalarOf) })}
      />
    );
  }
  if (test === 'prefix') {
    return (
      <TextInput
        aria-label={label}
        placeholder="Its first characters"
        value={condition.prefix ?? ''}
        onChange={(event) => onChange({ ...condition, prefix: event.currentTarget.value })}
      />
    );
  }
  const current = condition.equals ?? '';
  return (
    <TextInput
      aria-label={label}
      placeholder="Value"
      value={scalarOf(typed) === current ? typed : textOf(current)}
      onChange={(event) => {
        const text = event.currentTarget.value;
        setTyped(text);
        onChange({ ...condition, equals: scalarOf(text) });
      }}
    />
  );
}
