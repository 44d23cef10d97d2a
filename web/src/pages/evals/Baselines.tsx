// The executions that others of an eval are compared with, by name; set and removed here.
import { ActionIcon, Button, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Schemas } from '../../api/client';
import { baselinesQuery, removeBaseline, setBaseline } from '../../api/figures';
import { invalidate } from '../../api/queries';
import { Block } from '../../parts/Block';
import { originText } from '../../parts/labels';
import { PageLink } from '../../parts/links';
import { notify, notifyProblem } from '../../parts/notifications';
import { ago } from '../../parts/numbers';
import { RelativeTime } from '../../parts/RelativeTime';
import { Tip } from '../../parts/Tip';

export function Baselines({ evalId, executions }: { evalId: string; executions: Schemas['Execution'][] }) {
  const baselines = useQuery(baselinesQuery(evalId));
  const remove = useMutation({
    mutationFn: (name: string) => removeBaseline(evalId, name),
    onError: notifyProblem,
    onSuccess: () => void invalidate(['stats']),
  });
  return (
    <Block
      title="Baselines"
      hint={
        <>
          What its executions are compared with. Without a <Tip term="baseline">baseline</Tip> that is the
          execution before.
        </>
      }
    >
      <Stack gap="xs">
        {(baselines.data ?? []).map((one) => (
          <Group key={one.name} gap="sm">
            <Text size="sm" fw={600}>
              {one.name}
            </Text>
            <PageLink to="/executions/$executionId" params={{ executionId: one.executionId }} size="sm">
              {originOf(executions, one.executionId)}
            </PageLink>
            <RelativeTime at={one.createdAt} size="xs" />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove baseline ${one.name}`}
              onClick={() => remove.mutate(one.name)}
            >
              <IconTrash size={15} aria-hidden />
            </ActionIcon>
          </Group>
        ))}
        <SetBaseline evalId={evalId} executions={executions} />
      </Stack>
    </Block>
  );
}

function originOf(executions: Schemas['Execution'][], id: string): string {
  const execution = executions.find((one) => one.id === id);
  return (execution && originText(execution.labels)) || 'execution';
}

function SetBaseline({ evalId, executions }: { evalId: string; executions: Schemas['Execution'][] }) {
  const [name, setName] = useState('main');
  const [execution, setExecution] = useState<string | null>(null);
  const over = executions.filter((one) => one.status === 'completed');
  const set = useMutation({
    mutationFn: () => setBaseline({ name, execution: execution ?? undefined, evalId }),
    onError: notifyProblem,
    onSuccess: (made) => {
      notify(`"${made.name}" is set`);
      void invalidate(['stats']);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    set.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs" align="flex-end">
        <TextInput
          label="Name"
          size="xs"
          w={140}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Select
          label="Execution"
          size="xs"
          w={260}
          placeholder="The last whole one"
          clearable
          data={over.map((one) => ({
            value: one.id,
            label: [ago(one.createdAt), originText(one.labels)].filter(Boolean).join(' · '),
          }))}
          value={execution}
          onChange={setExecution}
        />
        <Button type="submit" size="xs" variant="default" loading={set.isPending} disabled={!name.trim()}>
          Set baseline
        </Button>
      </Group>
    </form>
  );
}
