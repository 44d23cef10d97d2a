// Headers sent to an agent. Secrets come back masked; a mask that is left alone keeps the secret.
import { Button, Group, PasswordInput, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import type { Problem } from '../api/client';
import { useInputProblem } from '../forms/inputProblems';
import { type HeaderRow, headersOf, isSecret, MASK, nameProblem, rowsOf } from './headers';
import { at } from './problems';
import { RowButtons } from './RowButtons';
import { same } from './useEditor';
import { useRows } from './useRows';

type HeadersEditorProps = {
  value: Record<string, string>;
  problems: Problem[];
  onChange: (value: Record<string, string>) => void;
};

export function HeadersEditor({ value, problems, onChange }: HeadersEditorProps) {
  const [typed, setTyped] = useState(() => rowsOf(value));
  const headers = same(headersOf(typed), value) ? typed : rowsOf(value);
  const rows = useRows<HeaderRow>(headers, (next) => {
    setTyped(next);
    onChange(headersOf(next));
  });
  return (
    <Stack gap="xs">
      {headers.length === 0 && (
        <Text size="sm" c="dimmed">
          None.
        </Text>
      )}
      {headers.map((row, index) => (
        <HeaderInputs
          key={rows.keys[index]}
          id={`header-${rows.keys[index]}`}
          row={row}
          number={index + 1}
          nameProblem={nameProblem(headers, index)}
          valueProblem={at(problems, `headers.${row.name}`) ?? at(problems, row.name)}
          onChange={(next) => rows.set(index, next)}
          onRemove={() => rows.remove(index)}
        />
      ))}
      <Group>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          onClick={() => rows.add({ name: '', value: '' })}
        >
          Add header
        </Button>
      </Group>
      <Text size="xs" c="dimmed">
        Secrets are kept encrypted and never shown again. Better still: refer to the environment with{' '}
        <code>&#36;{'{NAME}'}</code>.
      </Text>
    </Stack>
  );
}

type HeaderInputsProps = {
  id: string;
  row: HeaderRow;
  number: number;
  nameProblem?: string;
  valueProblem?: string;
  onChange: (row: HeaderRow) => void;
  onRemove: () => void;
};

function HeaderInputs(props: HeaderInputsProps) {
  const { id, row, number, onChange, onRemove } = props;
  useInputProblem(id, props.nameProblem && `Header ${number}: ${props.nameProblem.toLowerCase()}`);
  const Value = isSecret(row) ? PasswordInput : TextInput;
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap">
      <SimpleGrid cols={{ base: 1, xs: 2 }} flex={1} spacing="xs" verticalSpacing={4}>
        <TextInput
          aria-label={`Name of header ${number}`}
          placeholder="Name, such as Authorization"
          value={row.name}
          error={props.nameProblem}
          onChange={(event) => onChange({ ...row, name: event.currentTarget.value })}
        />
        <Value
          aria-label={`Value of header ${number}`}
          placeholder="Value"
          autoComplete="off"
          value={row.value}
          description={row.value === MASK ? 'Kept secret. Type to replace it.' : undefined}
          inputWrapperOrder={['input', 'description', 'error']}
          error={props.valueProblem}
          onFocus={(event) => row.value === MASK && event.currentTarget.select()}
          onChange={(event) => onChange({ ...row, value: event.currentTarget.value })}
        />
      </SimpleGrid>
      <RowButtons what={`header ${number}`} ordered={false} onRemove={onRemove} />
    </Group>
  );
}
