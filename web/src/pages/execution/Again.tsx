// Runs an eval again: all of it, what did not pass, or the runs that are selected.
import { Button, Menu } from '@mantine/core';
import { IconChevronDown, IconPlayerPlay } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import { invalidate } from '../../api/queries';
import { startExecution } from '../../api/runs';
import { notifyProblem } from '../../parts/notifications';
import { count, plural } from '../../parts/numbers';

interface Props {
  evalId: string;
  execution: Schemas['Execution'];
  counts: Schemas['Counts'];
  /** The ids of the runs that are ticked */
  selected: ReadonlySet<string>;
}

type Part = Pick<Schemas['StartExecution'], 'failedOf' | 'runIds'>;

const MOST_RUNS = 2_000;

export function Again({ evalId, execution, counts, selected }: Props) {
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: (part: Part) => startExecution({ evalId, trigger: 'web', labels: {}, ...part }),
    onSuccess: async (started) => {
      await invalidate(['executions', 'list'], ['stats']);
      await navigate({ to: '/executions/$executionId', params: { executionId: started.id } });
    },
    onError: notifyProblem,
  });
  const failed = counts.failed + counts.errored + counts.cancelled;
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
          What failed, errored or was cancelled
        </Menu.Item>
        <Menu.Item
          disabled={selected.size === 0 || selected.size > MOST_RUNS}
          onClick={() => start.mutate({ runIds: [...selected] })}
        >
          {selectedText(selected.size)}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function selectedText(number: number): string {
  if (number === 0) return 'What is selected (tick rows first)';
  if (number > MOST_RUNS) return `What is selected (${count(MOST_RUNS)} rows at most)`;
  return `What is selected (${plural(number, 'row')})`;
}
