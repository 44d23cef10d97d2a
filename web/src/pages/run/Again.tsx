// Holds the same conversation once more, or has today's evaluators judge it as it was.
import { Alert, Button } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { invalidate } from '../../api/queries';
import { rescoreRun, startRun } from '../../api/runs';
import { notifyProblem } from '../../parts/notifications';
import { OUTCOME_STYLES } from '../../parts/OutcomeBadge';
import { Markdown } from './Markdown';
import type { Run } from './results';

export function RunAgain({ run }: { run: Run }) {
  const navigate = useNavigate();
  const { scenarioId, connectorId, personaId, caseName } = run;
  const start = useMutation({
    mutationFn: (ids: { scenarioId: string; connectorId: string }) =>
      startRun({ ...ids, personaId, caseName, repetitions: 1, labels: {} }),
    onSuccess: async ({ runs }) => {
      await invalidate(['executions', 'list']);
      const [first] = runs;
      if (first) await navigate({ to: '/runs/$runId', params: { runId: first.id } });
    },
    onError: notifyProblem,
  });
  if (!scenarioId || !connectorId) return null;
  return (
    <Button
      variant="default"
      loading={start.isPending}
      onClick={() => start.mutate({ scenarioId, connectorId })}
    >
      Run again
    </Button>
  );
}

type Rescoring = ReturnType<typeof useRescoring>;

export function useRescoring(run: Run) {
  return useMutation({ mutationFn: () => rescoreRun(run.id), onError: notifyProblem });
}

export function RescoreButton({ rescoring }: { rescoring: Rescoring }) {
  return (
    <Button variant="default" loading={rescoring.isPending} onClick={() => rescoring.mutate()}>
      Rescore
    </Button>
  );
}

/** What the evaluators of today say. Nothing of it is kept, so the run's own result stays above it. */
export function Rescored({ rescoring }: { rescoring: Rescoring }) {
  if (!rescoring.data) return null;
  const { result, changed } = rescoring.data;
  const { word, color, icon: OutcomeIcon } = OUTCOME_STYLES[result.outcome];
  return (
    <Alert
      variant="outline"
      color={color}
      mb="md"
      icon={<OutcomeIcon aria-hidden />}
      title={`Today's evaluators say: ${word} (${changed ? 'changed' : 'unchanged'})`}
      withCloseButton
      closeButtonLabel="Close"
      onClose={rescoring.reset}
    >
      <Markdown text={result.reason} />
      Nothing of this is kept; the run keeps its own result.
    </Alert>
  );
}
