// What an execution must reach, a row for each requirement.
import { Button, Group, Paper, Select, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import type { Problem } from '../../api/client';
import { inside } from '../../editing/problems';
import { RowButtons } from '../../editing/RowButtons';
import { useRows } from '../../editing/useRows';
import {
  begun,
  FIELDS,
  KINDS,
  type Kind,
  kindOf,
  type Requirement,
  typedValue,
  withField,
} from './requirements';

interface Props {
  requirements: Requirement[];
  problems: Problem[];
  onChange: (requirements: Requirement[]) => void;
}

export function RequirementsEditor({ requirements, problems, onChange }: Props) {
  const rows = useRows(requirements, onChange);
  return (
    <Stack gap="xs" role="group" aria-label="Requirements">
      {requirements.length === 0 && (
        <Text size="sm" c="dimmed">
          None: any failure misses, and an error leaves it undecided.
        </Text>
      )}
      {requirements.map((requirement, index) => (
        <Row
          key={rows.keys[index]}
          number={index + 1}
          requirement={requirement}
          error={inside(problems, `requirements[${index}]`)}
          onChange={(next) => rows.set(index, next)}
          onRemove={() => rows.remove(index)}
        />
      ))}
      <Button
        variant="default"
        size="xs"
        w="max-content"
        leftSection={<IconPlus size={14} />}
        onClick={() => rows.add(begun('passRate'))}
      >
        Add requirement
      </Button>
    </Stack>
  );
}

const CHOICES = Object.entries(KINDS).map(([value, { label }]) => ({ value, label }));

interface RowProps {
  number: number;
  requirement: Requirement;
  error?: string;
  onChange: (requirement: Requirement) => void;
  onRemove: () => void;
}

function Row({ number, requirement, error, onChange, onRemove }: RowProps) {
  const kind = kindOf(requirement);
  return (
    <Paper withBorder p="sm" role="group" aria-label={`Requirement ${number}`}>
      <Group gap="sm" align="flex-end">
        <Select
          label="What"
          description="Of the execution"
          w={220}
          allowDeselect={false}
          data={CHOICES}
          value={kind}
          onChange={(next) => next && onChange(begun(next as Kind, requirement))}
        />
        {KINDS[kind].fields.map((name) => (
          <Field key={`${kind} ${name}`} name={name} requirement={requirement} onChange={onChange} />
        ))}
        <RowButtons what={`requirement ${number}`} ordered={false} onRemove={onRemove} />
      </Group>
      {error && (
        <Text size="sm" c="red" mt={4} role="alert">
          {error}
        </Text>
      )}
    </Paper>
  );
}

interface FieldProps {
  name: keyof Requirement;
  requirement: Requirement;
  onChange: (requirement: Requirement) => void;
}

/** What is typed stays as it is typed: "0." is on its way to 0.9. */
function Field({ name, requirement, onChange }: FieldProps) {
  const { label, description, holds } = FIELDS[name];
  const value = requirement[name] ?? '';
  const [text, setText] = useState(String(value));
  if ((typedValue(holds, text) ?? '') !== value) setText(String(value));
  return (
    <TextInput
      label={label}
      description={description}
      w={holds === 'text' ? 190 : 170}
      inputMode={holds === 'number' || holds === 'share' ? 'decimal' : 'text'}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        onChange(withField(requirement, name, event.currentTarget.value));
      }}
    />
  );
}
