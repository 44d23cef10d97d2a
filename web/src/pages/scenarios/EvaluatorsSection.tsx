// What must hold and what is measured: entries picked from the evaluator types there are.
import { Button, Menu, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconChevronDown, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { evaluatorTypesQuery, gatesQuery } from '../../api/definitions';
import { MovableRow } from '../../editing/MovableRow';
import { at, under } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { useRows } from '../../editing/useRows';
import { ErrorState } from '../../parts/ErrorState';
import type { Editing } from './draft';
import { EvaluatorCard } from './EvaluatorCard';

type Type = Schemas['EvaluatorType'];

type Props = {
  editor: Editing<'evaluators'>;
  hint?: string;
  /** What is said where there is none. */
  none?: string;
  /** Whether there are turns that it can hold on; a recorded response is one. */
  gated?: boolean;
};

const HINT = 'Assertions decide whether a run passes; metrics only measure.';
const NONE = 'None yet. A scenario needs an evaluator, or success or failure criteria.';

export function EvaluatorsSection({ editor, hint = HINT, none = NONE, gated = true }: Props) {
  const { draft, change, problems } = editor;
  const types = useQuery(evaluatorTypesQuery);
  // The gate a config yields is the server's to say; an entry's own choice is left out of the question.
  const asked = draft.evaluators.map(({ type, config }) => ({ type, config: config ?? {} }));
  const [settled] = useDebouncedValue(asked, 300);
  const gates = useQuery({ ...gatesQuery(settled), enabled: gated && settled.length > 0 });
  const rows = useRows(draft.evaluators, (evaluators) => change({ evaluators }));
  const add = (type: string) => rows.add({ type, config: {}, gate: null, name: null, reduce: null });
  const wrong = at(problems, 'evaluators') ?? at(problems, '');
  return (
    <Section title="Evaluators" hint={hint} action={<AddEvaluator types={types.data ?? []} onAdd={add} />}>
      {types.error && <ErrorState error={types.error} onRetry={() => void types.refetch()} />}
      {draft.evaluators.length === 0 && (
        <Text size="sm" c="dimmed">
          {none}
        </Text>
      )}
      {draft.evaluators.map((entry, index) => (
        <MovableRow key={rows.keys[index]} rows={rows} index={index} what={`evaluator ${index + 1}`} card>
          <EvaluatorCard
            id={rows.keys[index] as string}
            number={index + 1}
            entry={entry}
            type={types.data?.find((one) => one.type === entry.type)}
            gate={gates.data?.gates[index]}
            gated={gated}
            loaded={types.data !== undefined}
            problems={under(problems, `evaluators[${index}]`)}
            onChange={(next) => rows.set(index, next)}
          />
        </MovableRow>
      ))}
      {wrong && (
        <Text size="sm" c="red">
          {wrong}
        </Text>
      )}
    </Section>
  );
}

function AddEvaluator({ types, onAdd }: { types: Type[]; onAdd: (type: string) => void }) {
  return (
    <Menu position="bottom-end" width={340} withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          rightSection={<IconChevronDown size={14} />}
          disabled={types.length === 0}
        >
          Add evaluator
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={420} style={{ overflowY: 'auto' }}>
        <MenuPart title="Assertions" kind="assertion" types={types} onAdd={onAdd} />
        <Menu.Divider />
        <MenuPart title="Metrics" kind="metric" types={types} onAdd={onAdd} />
      </Menu.Dropdown>
    </Menu>
  );
}

type MenuPartProps = { title: string; kind: Type['kind']; types: Type[]; onAdd: (type: string) => void };

function MenuPart({ title, kind, types, onAdd }: MenuPartProps) {
  return (
    <>
      <Menu.Label>{title}</Menu.Label>
      {types
        .filter((one) => one.kind === kind)
        .map((one) => (
          <Menu.Item key={one.type} onClick={() => onAdd(one.type)}>
            <Text size="sm" fw={500}>
              {one.label}
            </Text>
            <Text size="xs" c="dimmed" lineClamp={2}>
              {one.description}
            </Text>
          </Menu.Item>
        ))}
    </>
  );
}
