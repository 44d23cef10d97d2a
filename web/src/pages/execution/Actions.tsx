// What can be done with an execution: retry what errored, cancel what waits, delete all of it.
import { Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconPlayerStop, IconRefresh, IconTrash } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import { invalidate } from '../../api/queries';
import { cancelExecution, deleteExecution, retryExecution } from '../../api/runs';
import { ConfirmDelete } from '../../parts/ConfirmDelete';
import { notify, notifyProblem } from '../../parts/notifications';
import { count, plural } from '../../parts/numbers';
import { Again } from './Again';
import { CompareButton } from './CompareButton';
import { Export } from './Export';

interface Props {
  execution: Schemas['Execution'];
  counts: Schemas['Counts'];
  /** The ids of the runs that are ticked */
  selected: ReadonlySet<string>;
}

export function Actions({ execution, counts, selected }: Props) {
  const [confirming, confirmation] = useDisclosure();
  const navigate = useNavigate();
  const changed = () => invalidate(['executions'], ['runs', 'execution', execution.id], ['stats']);
  const retry = useMutation({
    mutationFn: () => retryExecution(execution.id),
    onSuccess: async ({ count: number }) => {
      notify(`${plural(number, 'run')} queued again`);
      await changed();
    },
    onError: notifyProblem,
  });
  const cancel = useMutation({
    mutationFn: () => cancelExecution(execution.id),
    onSuccess: async ({ count: number }) => {
      notify(`${plural(number, 'run')} cancelled`);
      await changed();
    },
    onError: notifyProblem,
  });
  const waiting = counts.finished < counts.total;
  return (
    <>
      {!waiting && execution.evalId && (
        <Again evalId={execution.evalId} execution={execution} counts={counts} selected={selected} />
      )}
      {!waiting && execution.evalId && <CompareButton execution={execution} evalId={execution.evalId} />}
      <Export executionId={execution.id} />
      {counts.errored > 0 && (
        <Button
          variant="default"
          leftSection={<IconRefresh size={16} aria-hidden />}
          loading={retry.isPending}
          onClick={() => retry.mutate()}
        >
          Retry {count(counts.errored)} errored
        </Button>
      )}
      {waiting && (
        <Button
          variant="default"
          leftSection={<IconPlayerStop size={16} aria-hidden />}
          loading={cancel.isPending}
          onClick={() => cancel.mutate()}
        >
          Cancel
        </Button>
      )}
      {!waiting && (
        <Button
          variant="default"
          leftSection={<IconTrash size={16} aria-hidden />}
          onClick={confirmation.open}
        >
          Delete
        </Button>
      )}
      <ConfirmDelete
        opened={confirming}
        onClose={confirmation.close}
        what="this execution"
        consequence={`Its ${plural(counts.total, 'run')} and everything said in them are deleted too. This cannot be undone.`}
        onDelete={() => deleteExecution(execution.id)}
        onDeleted={() => {
          notify('Deleted');
          void invalidate(['executions', 'list'], ['stats']);
          void navigate({ to: '/executions' });
        }}
      />
    </>
  );
}
