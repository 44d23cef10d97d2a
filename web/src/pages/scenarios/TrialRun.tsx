// A run as it goes on: where it stands, what is said, what the evaluators find.
import { Alert, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { cancelRun, runQuery } from '../../api/runs';
import { ErrorState } from '../../parts/ErrorState';
import { LinkButton } from '../../parts/links';
import { duration, measure } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { type Standing, standingOf } from '../../parts/outcome';
import classes from './TrialRun.module.css';

type Run = Schemas['Run'];
type Result = Schemas['Finding'];

const isOver = (status: Run['status']) => status !== 'queued' && status !== 'running';

export function TrialRun({ started }: { started: Schemas['RunSummary'] }) {
  // Events make it fresh; asking now and then covers a stream that was cut off.
  const query = useQuery({
    ...runQuery(started.id),
    refetchInterval: ({ state }) => (state.data && isOver(state.data.status) ? false : 5_000),
  });
  const cancel = useMutation({ mutationFn: () => cancelRun(started.id) });
  const run = query.data;
  const current = run ?? started;
  const over = isOver(current.status);
  return (
    <Stack gap="sm" mt="sm">
      <Group justify="space-between">
        <Group gap="xs" role="status" aria-label="Where the run stands">
          <OutcomeBadge standing={standingOf(current)} size="lg" />
          <Text size="sm" c="dimmed">
            {over ? duration(current.latencyMs) : `Turn ${current.turnCount}`}
          </Text>
        </Group>
        {over ? (
          <LinkButton to="/runs/$runId" params={{ runId: started.id }} variant="default" size="xs">
            Open the run
          </LinkButton>
        ) : (
          <Button variant="default" size="xs" loading={cancel.isPending} onClick={() => cancel.mutate()}>
            Cancel
          </Button>
        )}
      </Group>
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {run?.error && (
        <Alert color="orange" title="The run could not be finished">
          {run.error}
        </Alert>
      )}
      {run?.result && !run.error && <Text size="sm">{run.result.reason}</Text>}
      {run && <Transcript messages={run.messages} />}
      {run && <Results results={resultsOf(run)} />}
    </Stack>
  );
}

/** The verdicts of a finished run; until then those of the last turn. */
function resultsOf(run: Run): Result[] {
  return run.output?.evaluatorResults ?? run.turns.at(-1)?.evaluatorResults ?? [];
}

function Transcript({ messages }: { messages: Run['messages'] }) {
  if (messages.length === 0) return null;
  return (
    <Stack gap={6} component="ol" className={classes.transcript} aria-label="Transcript">
      {messages.map((message, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages are only ever added at the end
        <li key={index} className={classes.message} data-role={message.role}>
          <Text size="xs" c="dimmed">
            {message.role}
          </Text>
          <Text size="sm" className={classes.text}>
            {textOf(message)}
          </Text>
        </li>
      ))}
    </Stack>
  );
}

function textOf({ content, tool_calls }: Run['messages'][number]): string {
  const text =
    typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('');
  const calls = (tool_calls ?? []).map((call) => `${call.function.name}(${call.function.arguments})`);
  return [text, ...calls].filter(Boolean).join('\n');
}

function Results({ results }: { results: Result[] }) {
  if (results.length === 0) return null;
  return (
    <div>
      <Title order={3} size="sm" mb={6}>
        Evaluators
      </Title>
      <Stack gap={6} component="ul" className={classes.results}>
        {results.map((result, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: results come whole and in a fixed order
          <li key={index}>
            <Group gap="xs" wrap="nowrap" align="flex-start">
              {result.kind === 'metric' ? (
                <Text size="sm" fw={600} miw={64}>
                  {result.error ? '–' : measure(result.value)}
                </Text>
              ) : (
                <OutcomeBadge standing={standingOfResult(result)} />
              )}
              <Text size="sm" className={classes.text}>
                <b>{titleOf(result)}</b> {result.reason}
              </Text>
            </Group>
          </li>
        ))}
      </Stack>
    </div>
  );
}

/** A name somebody gave says more than the type's label. */
function titleOf({ name, type, label }: Result): string {
  return name && name !== type ? name : label;
}

function standingOfResult(result: Result): Standing {
  if (result.error) return 'error';
  if (result.skipped) return 'skipped';
  if (result.pending) return 'pending';
  return result.success ? 'pass' : 'fail';
}
