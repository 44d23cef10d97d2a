// Runs an eval again: all of it, what did not pass, or the runs that are shown.
import { Button, Menu } from '@mantine/core';
import { IconChevronDown, IconPlayerPlay } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import { invalidate, startExecution } from '../../api/queries';
import { notifyProblem } from '../../parts/notifications';
import { count } from '../../parts/numbers';

interface Props {
  evalId: string;
  execution: Schemas['Execution'];
  counts: Schemas['Counts'];
  /** The ids of the runs that the filters leave */
  shown: string[];
}

type Part = Pick<Schemas['StartExecution'], 'failedOf' | 'runIds'>;

const MOST_RUNS = 2_000;

export function Again({ evalId, execution, counts, shown }: Props) {
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: (part: Part) => startExecution({ evalId, trigger: 'web', labels: {}, ...part }),
    onSuccess: async (started) => {
      await invalidate(['executions', 'list'], ['stats']);
      await navigate({ to: '/executions/$executionId', params: { executionId: started.id } });
    },
    onError: notifyProblem,
  });
  const failed = counts.failed + counts.errored;
  const part = shown.length > 0 && shown.length < counts.total && shown.length <= MOST_RUNS;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          loading={start.isPending}
          leftSection={<IconPlayerPlay size={16} aria-hidden />}
          rightSection={<IconChevronDown size={14} aria-hidden />}
        >
          Run again
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => start.mutate({})}>The whole eval</Menu.Item>
        <Menu.Item disabled={failed === 0} onClick={() => start.mutate({ failedOf: execution.id })}>
          What failed or errored
        </Menu.Item>
        <Menu.Item disabled={!part} onClick={() => start.mutate({ runIds: shown })}>
          {part ? `The ${count(shown.length)} shown` : 'Those shown (filter first)'}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
