// Starts an eval, as often as wanted, and goes to where it can be watched.
import { Button, Checkbox, Group, Popover, Stack, Text, TextInput } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { Schemas } from '../../api/client';
import { invalidate } from '../../api/queries';
import { startExecution } from '../../api/runs';
import { notifyProblem } from '../../parts/notifications';
import { plural } from '../../parts/numbers';

type Eval = Schemas['StoredEval'];

export function RunButton({ evaluation, size }: { evaluation: Eval; size?: 'xs' | 'sm' }) {
  const [repetitions, setRepetitions] = useState<number | string>(evaluation.repetitions ?? '');
  const [untilDecided, setUntilDecided] = useState(false);
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: () =>
      startExecution({
        evalId: evaluation.id,
        repetitions: Number(repetitions) || null,
        untilDecided,
        trigger: 'web',
        labels: {},
      }),
    onSuccess: async (execution) => {
      await invalidate(['executions', 'list'], ['stats']);
      await navigate({ to: '/executions/$executionId', params: { executionId: execution.id } });
    },
    onError: notifyProblem,
  });
  return (
    <Popover position="bottom-end" withArrow trapFocus returnFocus>
      <Popover.Target>
        <Button
          size={size}
          leftSection={<IconPlayerPlay size={16} aria-hidden />}
          aria-label={`Run ${evaluation.name}`}
        >
          Run
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={`Run ${evaluation.name}`}>
        <Stack
          gap="xs"
          component="form"
          onSubmit={(event: FormEvent) => {
            event.preventDefault();
            if (!start.isPending) start.mutate();
          }}
        >
          {/* The browser's own field for numbers: the library's is a tenth of what this page loads first. */}
          <TextInput
            type="number"
            label="Repetitions"
            description="How often each combination runs"
            min={1}
            max={10_000}
            value={repetitions}
            onChange={(event) => setRepetitions(event.currentTarget.value)}
            data-autofocus
          />
          <Checkbox
            label="Until decided"
            description="Repeats only what is still open"
            checked={untilDecided}
            onChange={(event) => setUntilDecided(event.currentTarget.checked)}
          />
          <Text size="xs" c="dimmed">
            {plural(evaluation.scenarioIds.length, 'scenario')} on{' '}
            {plural(evaluation.connectorIds.length, 'connector')}
          </Text>
          <Group justify="flex-end">
            <Button type="submit" loading={start.isPending}>
              Start
            </Button>
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
