// The table of cases: one column per value, then the ground truth and the context.
import { ActionIcon, Button, Group, Popover, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { type ReactNode, useRef, useState } from 'react';
import type { Problem } from '../../api/client';
import { at } from '../../editing/problems';
import { RowButtons } from '../../editing/RowButtons';
import { type Rows, useRows } from '../../editing/useRows';
import { notifyUndo } from '../../parts/undo';
import { columnsOf, withColumnOf, withoutColumn, withVar } from './cells';
import type { Case } from './draft';
import { TextOrJson } from './TextOrJson';

type CasesTableProps = {
  cases: Case[];
  /** The placeholders the scenario uses. */
  placeholders: string[];
  problems: Problem[];
  onChange: (cases: Case[]) => void;
  /** Other ways to add cases */
  actions?: ReactNode;
};

export function CasesTable({ cases, placeholders, problems, onChange, actions }: CasesTableProps) {
  const [extra, setExtra] = useState<string[]>([]);
  const rows = useRows(cases, onChange);
  const latest = useRef({ cases, onChange });
  latest.current = { cases, onChange };
  const columns = columnsOf(cases, [...placeholders, ...extra]);
  const removeColumn = (column: string) => {
    setExtra(extra.filter((one) => one !== column));
    onChange(withoutColumn(cases, column));
    notifyUndo(`Column ${column} removed`, () => {
      setExtra(extra);
      latest.current.onChange(withColumnOf(latest.current.cases, cases, column));
    });
  };
  const addRow = () => rows.add({ name: null, vars: {}, groundTruth: null, context: {} });
  return (
    <Stack gap="xs">
      {cases.length > 0 && (
        <Table.ScrollContainer
          minWidth={420 + columns.length * 140}
          scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': 'Cases' } }}
        >
          <Table withColumnBorders highlightOnHover={false} verticalSpacing={4} horizontalSpacing={6}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Name</Table.Th>
                {columns.map((column) => (
                  <ColumnHead
                    key={column}
                    column={column}
                    fixed={placeholders.includes(column)}
                    onRemove={() => removeColumn(column)}
                  />
                ))}
                <Table.Th>Ground truth</Table.Th>
                <Table.Th>Context</Table.Th>
                <Table.Td />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {cases.map((one, index) => (
                <CaseRow key={rows.keys[index]} {...{ one, index, columns, rows, problems }} />
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      <Group gap="xs">
        <Button variant="default" size="xs" leftSection={<IconPlus size={14} />} onClick={addRow}>
          Add case
        </Button>
        {cases.length > 0 && <AddColumn taken={columns} onAdd={(column) => setExtra([...extra, column])} />}
        {actions}
      </Group>
      <Text size="xs" c="dimmed">
        A cell holds text, or JSON such as 3, true or {'["a", "b"]'}.
      </Text>
    </Stack>
  );
}

type ColumnHeadProps = { column: string; fixed: boolean; onRemove: () => void };

function ColumnHead({ column, fixed, onRemove }: ColumnHeadProps) {
  return (
    <Table.Th>
      <Group gap={4} wrap="nowrap">
        {column}
        {!fixed && (
          <ActionIcon
            size="xs"
            variant="subtle"
            color="gray"
            aria-label={`Remove column ${column}`}
            onClick={onRemove}
          >
            <IconX size={12} />
          </ActionIcon>
        )}
      </Group>
    </Table.Th>
  );
}

type CaseRowProps = { one: Case; index: number; columns: string[]; rows: Rows<Case>; problems: Problem[] };

function CaseRow({ one, index, columns, rows, problems }: CaseRowProps) {
  const number = index + 1;
  const last = rows.keys.length - 1;
  return (
    <Table.Tr>
      <Table.Td miw={120}>
        <TextInput
          aria-label={`Name of case ${number}`}
          placeholder={`case ${number}`}
          value={one.name ?? ''}
          error={at(problems, `cases[${index}].name`)}
          onChange={(event) => rows.set(index, { ...one, name: event.currentTarget.value || null })}
        />
      </Table.Td>
      {columns.map((column) => (
        <Table.Td key={column} miw={120}>
          <TextOrJson
            aria-label={`${column} in case ${number}`}
            value={one.vars?.[column]}
            error={at(problems, `cases[${index}].vars.${column}`)}
            onChange={(value) => rows.set(index, withVar(one, column, value))}
          />
        </Table.Td>
      ))}
      <Table.Td miw={120}>
        <TextOrJson
          aria-label={`Ground truth of case ${number}`}
          value={one.groundTruth}
          error={at(problems, `cases[${index}].groundTruth`)}
          onChange={(value) => rows.set(index, { ...one, groundTruth: value ?? null })}
        />
      </Table.Td>
      <Table.Td miw={120}>
        <TextOrJson
          aria-label={`Context of case ${number}`}
          value={Object.keys(one.context ?? {}).length > 0 ? one.context : undefined}
          error={at(problems, `cases[${index}].context`)}
          onChange={(value) => rows.set(index, { ...one, context: (value ?? {}) as Case['context'] })}
        />
      </Table.Td>
      <Table.Td w={100}>
        <RowButtons
          what={`case ${number}`}
          onUp={index > 0 ? () => rows.move(index, index - 1) : undefined}
          onDown={index < last ? () => rows.move(index, index + 1) : undefined}
          onRemove={() => rows.remove(index)}
        />
      </Table.Td>
    </Table.Tr>
  );
}

function AddColumn({ taken, onAdd }: { taken: string[]; onAdd: (column: string) => void }) {
  const [name, setName] = useState('');
  const [opened, setOpened] = useState(false);
  const column = name.trim();
  const add = () => {
    if (!column || taken.includes(column)) return;
    onAdd(column);
    setName('');
    setOpened(false);
  };
  return (
    <Popover opened={opened} onChange={setOpened} trapFocus withArrow>
      <Popover.Target>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          onClick={() => setOpened(!opened)}
        >
          Add column
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Group gap="xs" align="flex-end">
          <TextInput
            label="Name of the value"
            description="{{name}} in a text is filled in with it"
            value={name}
            error={taken.includes(column) ? 'This column exists already' : undefined}
            onChange={(event) => setName(event.currentTarget.value)}
            onKeyDown={(event) => event.key === 'Enter' && add()}
          />
          <Button onClick={add}>Add</Button>
        </Group>
      </Popover.Dropdown>
    </Popover>
  );
}
