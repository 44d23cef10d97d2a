// Which evaluators and metrics have a column of their own.
import { Button, Checkbox, Popover, Stack, Text } from '@mantine/core';
import { IconColumns3 } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { MOST_COLUMNS } from '../../router';

type Figures = Schemas['EvaluatorsFigures'];

interface Props {
  figures: UseQueryResult<Figures>;
  chosen: string[];
  onChange: (columns: string[]) => void;
  opened: boolean;
  onOpen: (opened: boolean) => void;
}

const KINDS = [
  ['assertion', 'Evaluators'],
  ['metric', 'Metrics'],
] as const;

export function ColumnChoice({ figures, chosen, onChange, opened, onOpen }: Props) {
  return (
    <Popover position="bottom-end" withinPortal opened={opened} onChange={onOpen} trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconColumns3 size={14} aria-hidden />}
          onClick={() => onOpen(!opened)}
        >
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown mah={360} style={{ overflowY: 'auto' }}>
        {figures.error && <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />}
        {figures.isPending && <Loading rows={3} />}
        {figures.data?.evaluators.length === 0 && <Text size="sm">No evaluator found anything yet.</Text>}
        <Stack gap="sm">
          {KINDS.map(([kind, title]) => (
            <Kind
              key={kind}
              title={title}
              names={namesOf(figures.data, kind)}
              chosen={chosen}
              onChange={onChange}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function namesOf(figures: Figures | undefined, kind: Schemas['EvaluatorFigures']['kind']): string[] {
  const own = (figures?.evaluators ?? []).filter((one) => one.kind === kind);
  return [...new Set(own.map((one) => one.name))].sort();
}

interface KindProps {
  title: string;
  names: string[];
  chosen: string[];
  onChange: (columns: string[]) => void;
}

function Kind({ title, names, chosen, onChange }: KindProps) {
  if (names.length === 0) return null;
  const toggle = (name: string, on: boolean) =>
    onChange(on ? [...chosen, name] : chosen.filter((one) => one !== name));
  return (
    <Stack gap={6} role="group" aria-label={title}>
      <Text size="xs" c="dimmed" fw={600}>
        {title}
      </Text>
      {names.map((name) => (
        <Checkbox
          key={name}
          size="xs"
          label={name}
          checked={chosen.includes(name)}
          disabled={!chosen.includes(name) && chosen.length >= MOST_COLUMNS}
          onChange={(event) => toggle(name, event.currentTarget.checked)}
        />
      ))}
    </Stack>
  );
}
