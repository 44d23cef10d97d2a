// What is said: before the conversation begins, and by the user in a fixed order.
import { Button, Group, NativeSelect, Stack, Text, Textarea, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import type { Problem } from '../../api/client';
import { MovableRow } from '../../editing/MovableRow';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { useRows } from '../../editing/useRows';
import { JsonBox } from '../../forms/JsonField';
import { isPlain, type Message, type ScenarioEditing } from './draft';

const ROLES = ['user', 'assistant', 'system', 'developer', 'tool'];

export function ConversationSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  return (
    <Section
      title="Conversation"
      hint="Alt with the arrow keys moves a message up or down. {{name}} is filled in from the case."
    >
      <Script value={draft.script} problems={problems} onChange={(script) => change({ script })} />
      <Seeds value={draft.messages} problems={problems} onChange={(messages) => change({ messages })} />
    </Section>
  );
}

type ListProps<T> = { value: T[]; problems: Problem[]; onChange: (value: T[]) => void };

function Script({ value, problems, onChange }: ListProps<string>) {
  const rows = useRows(value, onChange);
  const wrong = at(problems, 'script');
  return (
    <Stack gap="xs">
      <Heading title="Script" hint="Fixed user messages, sent one per turn." />
      {value.map((text, index) => (
        <MovableRow key={rows.keys[index]} rows={rows} index={index} what={`script message ${index + 1}`}>
          <Textarea
            aria-label={`Script message ${index + 1}`}
            autosize
            minRows={1}
            maxRows={12}
            value={text}
            error={at(problems, `script[${index}]`)}
            onChange={(event) => rows.set(index, event.currentTarget.value)}
          />
        </MovableRow>
      ))}
      {wrong && (
        <Text size="sm" c="red">
          {wrong}
        </Text>
      )}
      <Add label="Add script message" onClick={() => rows.add('')} />
    </Stack>
  );
}

function Seeds({ value, problems, onChange }: ListProps<Message>) {
  const rows = useRows(value, onChange);
  return (
    <Stack gap="xs" mt="sm">
      <Heading title="Seed messages" hint="What was said before; they do not count towards the limit." />
      {value.map((message, index) => (
        <MovableRow key={rows.keys[index]} rows={rows} index={index} what={`seed message ${index + 1}`}>
          <Seed
            id={rows.keys[index] as string}
            message={message}
            number={index + 1}
            problem={at(problems, `messages[${index}]`) ?? at(problems, `messages[${index}].content`)}
            onChange={(next) => rows.set(index, next)}
          />
        </MovableRow>
      ))}
      <Add label="Add seed message" onClick={() => rows.add({ role: 'user', content: '' })} />
    </Stack>
  );
}

type SeedProps = {
  id: string;
  message: Message;
  number: number;
  problem?: string;
  onChange: (message: Message) => void;
};

function Seed({ id, message, number, problem, onChange }: SeedProps) {
  if (!isPlain(message)) {
    return (
      <JsonBox
        id={id}
        label={`Seed message ${number} (${message.role})`}
        value={message}
        error={problem}
        onChange={(next) => onChange((next ?? { role: 'user', content: '' }) as Message)}
      />
    );
  }
  const roles = ROLES.includes(message.role) ? ROLES : [...ROLES, message.role];
  return (
    <Group gap="xs" align="flex-start" wrap="wrap">
      <NativeSelect
        aria-label={`Role of seed message ${number}`}
        data={roles}
        value={message.role}
        w={120}
        onChange={(event) => onChange({ ...message, role: event.currentTarget.value })}
      />
      <Textarea
        aria-label={`Seed message ${number}`}
        autosize
        minRows={1}
        maxRows={12}
        flex="1 1 200px"
        value={typeof message.content === 'string' ? message.content : ''}
        error={problem}
        onChange={(event) => onChange({ ...message, content: event.currentTarget.value })}
      />
    </Group>
  );
}

function Heading({ title, hint }: { title: string; hint: string }) {
  return (
    <div>
      <Title order={3} size="sm">
        {title}
      </Title>
      <Text size="xs" c="dimmed">
        {hint}
      </Text>
    </div>
  );
}

function Add({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Group>
      <Button variant="default" size="xs" leftSection={<IconPlus size={14} />} onClick={onClick}>
        {label}
      </Button>
    </Group>
  );
}
