// Weighted criteria: named qualities that evaluators score on a scale.
import { Autocomplete, Button, Group, NumberInput, Paper, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import type { Problem } from '../../api/client';
import { MovableRow } from '../../editing/MovableRow';
import { at, under } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { useRows } from '../../editing/useRows';
import { JsonBox } from '../../forms/JsonField';
import type { Criterion, Editing } from './draft';

const SCALES = ['binary', 'pass/fail', 'likert5', 'numeric'];
const WITHOUT_RANGE = ['binary', 'pass/fail', 'likert5'];

const HINT =
  'Named qualities that evaluators score. Their weighted mean is the overall score; it never changes pass or fail.';

export function ScalesSection({ editor, hint = HINT }: { editor: Editing<'criteria'>; hint?: string }) {
  const { draft, change, problems } = editor;
  const rows = useRows(draft.criteria, (criteria) => change({ criteria }));
  const wrong = at(problems, 'criteria');
  return (
    <Section title="Weighted criteria" hint={hint}>
      {draft.criteria.map((criterion, index) => (
        <MovableRow key={rows.keys[index]} rows={rows} index={index} what={`criterion ${index + 1}`} card>
          <CriterionCard
            id={rows.keys[index] as string}
            criterion={criterion}
            problems={under(problems, `criteria[${index}]`)}
            onChange={(next) => rows.set(index, next)}
          />
        </MovableRow>
      ))}
      {wrong && (
        <Text size="sm" c="red">
          {wrong}
        </Text>
      )}
      <Group>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          onClick={() =>
            rows.add({ name: '', description: '', scale: 'binary', weight: 1, range: null, labels: null })
          }
        >
          Add criterion
        </Button>
      </Group>
    </Section>
  );
}

type CriterionCardProps = {
  id: string;
  criterion: Criterion;
  problems: Problem[];
  onChange: (criterion: Criterion) => void;
};

function CriterionCard({ id, criterion, problems, onChange }: CriterionCardProps) {
  const scale = criterion.scale ?? 'binary';
  return (
    <Paper withBorder p="sm">
      <Stack gap="xs">
        <Group gap="xs" align="flex-start" pr={90}>
          <TextInput
            label="Name"
            description="What results call this criterion"
            required
            flex="2 1 160px"
            value={criterion.name}
            error={at(problems, 'name')}
            onChange={(event) => onChange({ ...criterion, name: event.currentTarget.value })}
          />
          <Autocomplete
            label="Scale"
            description="Or words of your own"
            flex="1 1 120px"
            data={SCALES}
            value={scale}
            error={at(problems, 'scale')}
            onChange={(next) => onChange({ ...criterion, scale: next })}
          />
          <NumberInput
            label="Weight"
            description="Beside the others"
            flex="1 1 90px"
            min={0}
            value={criterion.weight ?? 1}
            error={at(problems, 'weight')}
            onChange={(next) => onChange({ ...criterion, weight: Number(next) })}
          />
        </Group>
        <TextInput
          label="Description"
          description="What makes it good"
          value={criterion.description ?? ''}
          error={at(problems, 'description')}
          onChange={(event) => onChange({ ...criterion, description: event.currentTarget.value })}
        />
        {!WITHOUT_RANGE.includes(scale) && (
          <Range criterion={criterion} problems={problems} onChange={onChange} />
        )}
        {!SCALES.includes(scale) && (
          <JsonBox
            id={`${id}-labels`}
            label="Labels"
            description='Words of the scale with their share from 0 to 1, such as {"good": 1, "poor": 0.2}'
            value={criterion.labels}
            error={at(problems, 'labels')}
            onChange={(labels) => onChange({ ...criterion, labels: (labels ?? null) as Criterion['labels'] })}
          />
        )}
      </Stack>
    </Paper>
  );
}

function Range({ criterion, problems, onChange }: Omit<CriterionCardProps, 'id'>) {
  const [low, high] = criterion.range ?? [undefined, undefined];
  const set = (from: number | string | undefined, to: number | string | undefined) => {
    const bounds = [from, to].filter((one) => one !== undefined && one !== '');
    onChange({ ...criterion, range: bounds.length === 0 ? null : [Number(from || 0), Number(to || 0)] });
  };
  return (
    <Group gap="xs" align="flex-start">
      <NumberInput
        label="Lowest score"
        description="Counts as 0"
        w={120}
        value={low ?? ''}
        error={at(problems, 'range')}
        onChange={(next) => set(next, high)}
      />
      <NumberInput
        label="Highest score"
        description="Counts as 1"
        w={120}
        value={high ?? ''}
        onChange={(next) => set(low, next)}
      />
    </Group>
  );
}
