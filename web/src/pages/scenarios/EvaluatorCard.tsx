// One evaluator of a scenario: what it is, when it must hold, and its config.
import { Alert, Box, Group, List, NativeSelect, Paper, Stack, Text, TextInput, Title } from '@mantine/core';
import type { Problem, Schemas } from '../../api/client';
import { GATES, type Gate } from '../../editing/gates';
import { at, under } from '../../editing/problems';
import { ConfigForm } from '../../forms/ConfigForm';
import { JsonBox } from '../../forms/JsonField';
import { KindBadge } from '../../parts/KindBadge';
import { Tip } from '../../parts/Tip';
import type { EvaluatorUse } from './draft';

type EvaluatorCardProps = {
  id: string;
  number: number;
  entry: EvaluatorUse;
  type: Schemas['EvaluatorType'] | undefined;
  /** The gate its config yields, as far as it can be read. */
  gate: Gate | null | undefined;
  gated: boolean;
  loaded: boolean;
  /** What is wrong with this entry, each path beginning inside it. */
  problems: Problem[];
  onChange: (entry: EvaluatorUse) => void;
};

export function EvaluatorCard(props: EvaluatorCardProps) {
  const { id, number, entry, type, gate, gated, loaded, problems, onChange } = props;
  return (
    <Paper
      withBorder
      p="sm"
      component="section"
      aria-label={`Evaluator ${number}: ${type?.label ?? entry.type}`}
    >
      <Stack gap="sm">
        <Box pr={90}>
          <Group gap="xs">
            <Title order={3} size="md">
              {type?.label ?? entry.type}
            </Title>
            {type && <KindBadge kind={type.kind} />}
          </Group>
          <Text size="sm" c="dimmed">
            {type?.description}
          </Text>
        </Box>
        {loaded && !type && (
          <Alert color="orange" title="This type is not registered here">
            The plugin that brought "{entry.type}" is not loaded. See Settings for what is.
          </Alert>
        )}
        <Wrong problems={problems} />
        <Group gap="xs" align="flex-start">
          <TextInput
            label="Name"
            description="In results"
            placeholder={entry.type}
            flex="1 1 160px"
            value={entry.name ?? ''}
            error={at(problems, 'name')}
            onChange={(event) => onChange({ ...entry, name: event.currentTarget.value || null })}
          />
          {gated && (
            <GateSelect
              entry={entry}
              own={gate ?? type?.gate}
              measures={type?.kind === 'metric'}
              problem={at(problems, 'gate')}
              onChange={onChange}
            />
          )}
          {gated && type?.kind === 'metric' && <ReduceSelect entry={entry} onChange={onChange} />}
        </Group>
        {type ? (
          <ConfigForm
            id={id}
            schema={type.configSchema}
            value={entry.config ?? {}}
            problems={under(problems, 'config')}
            onChange={(config) => onChange({ ...entry, config })}
          />
        ) : (
          loaded && (
            <JsonBox
              id={`${id}-config`}
              label="Config"
              description="Its settings as a JSON object"
              value={entry.config}
              onChange={(config) => onChange({ ...entry, config: (config ?? {}) as EvaluatorUse['config'] })}
            />
          )
        )}
      </Stack>
    </Paper>
  );
}

function Wrong({ problems }: { problems: Problem[] }) {
  if (problems.length === 0) return null;
  return (
    <List size="sm" c="red" listStyleType="none">
      {problems.map(({ path, message }) => (
        <List.Item key={`${path} ${message}`}>
          {path.replace(/^config\.?/, '') && <b>{path.replace(/^config\.?/, '')}: </b>}
          {message}
        </List.Item>
      ))}
    </List>
  );
}

type GateSelectProps = {
  entry: EvaluatorUse;
  own: Gate | undefined;
  measures: boolean;
  problem?: string;
  onChange: (entry: EvaluatorUse) => void;
};

function GateSelect({ entry, own, measures, problem, onChange }: GateSelectProps) {
  const gate = entry.gate ?? own;
  const meaning = measures ? 'measures' : 'meaning';
  const options = Object.entries(GATES).map(([value, { label }]) => ({ value, label }));
  return (
    <NativeSelect
      label={<Tip term="gate">When it must hold</Tip>}
      description={gate ? `It ${GATES[gate][meaning]}` : 'The gate of this check'}
      flex="1 1 200px"
      data={[
        { value: '', label: own ? `As usual: ${GATES[own].label.toLowerCase()}` : 'As usual' },
        ...options,
      ]}
      value={entry.gate ?? ''}
      error={problem}
      onChange={(event) => onChange({ ...entry, gate: (event.currentTarget.value || null) as Gate | null })}
    />
  );
}

const REDUCE = [
  { value: '', label: 'As usual' },
  { value: 'last', label: 'Last' },
  { value: 'sum', label: 'Sum' },
  { value: 'mean', label: 'Mean' },
  { value: 'max', label: 'Highest' },
];

function ReduceSelect({ entry, onChange }: { entry: EvaluatorUse; onChange: (entry: EvaluatorUse) => void }) {
  return (
    <NativeSelect
      label="Over the turns"
      description="How its values become one"
      flex="1 1 200px"
      data={REDUCE}
      value={entry.reduce ?? ''}
      onChange={(event) =>
        onChange({ ...entry, reduce: (event.currentTarget.value || null) as EvaluatorUse['reduce'] })
      }
    />
  );
}
