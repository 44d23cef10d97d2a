// A run in short: what it was, what it came to and why, and what can be done with it.
import { Alert, Button, Group, List, Select, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { invalidate } from '../../api/queries';
import { cancelRun, retryRun } from '../../api/runs';
import { LinkButton, PageLink } from '../../parts/links';
import { notify, notifyProblem } from '../../parts/notifications';
import { duration, measure, plural } from '../../parts/numbers';
import { OUTCOME_STYLES, OutcomeBadge } from '../../parts/OutcomeBadge';
import { faultText, standingOf } from '../../parts/outcome';
import { PageTitle } from '../../parts/PageTitle';
import { RelativeTime } from '../../parts/RelativeTime';
import { RescoreButton, Rescored, RunAgain, useRescoring } from './Again';
import { Folded } from './Folded';
import { Neighbours } from './Neighbours';
import { TurnLink } from './ResultTables';
import classes from './Run.module.css';
import {
  failuresOf,
  keyOf,
  type Run,
  resultsOf,
  standingOfResult,
  titleOf,
  tokensOf,
  whenText,
} from './results';

export function RunHead({ run, attempts }: { run: Run; attempts: number }) {
  const standing = standingOf(run);
  const rescoring = useRescoring(run);
  const name = run.caseName ? `${run.scenarioName} · ${run.caseName}` : run.scenarioName;
  return (
    <>
      <PageTitle
        title={name}
        above={[
          <PageLink key="all" to="/executions">
            Executions
          </PageLink>,
          <PageLink key="one" to="/executions/$executionId" params={{ executionId: run.executionId }}>
            Execution
          </PageLink>,
          <span key="run">Run</span>,
        ]}
        beside={<OutcomeBadge standing={standing} size="lg" />}
        actions={
          <>
            <Neighbours run={run} />
            <Actions run={run} attempts={attempts} />
            {run.completedAt && <RunAgain run={run} />}
            {run.completedAt && <RescoreButton rescoring={rescoring} />}
            {run.completedAt && run.turnCount > 0 && <MakeScenario run={run} />}
          </>
        }
      />
      <Facts run={run} />
      <Reason run={run} />
      <Rescored rescoring={rescoring} />
    </>
  );
}

function MakeScenario({ run }: { run: Run }) {
  return (
    <LinkButton to="/scenarios/new" search={{ fromRun: run.id }} variant="default">
      Make a scenario of it
    </LinkButton>
  );
}

function Facts({ run }: { run: Run }) {
  const tokens = tokensOf(run.output?.tokensUsage)?.total ?? run.totalTokens;
  const facts = [
    run.personaName && `as ${run.personaName}`,
    run.repetition > 1 && `repetition ${run.repetition}`,
    run.attempt > 1 && `attempt ${run.attempt}`,
    plural(run.turnCount, 'turn'),
    run.latencyMs !== null && duration(run.latencyMs),
    tokens !== null && tokens !== undefined && plural(tokens, 'token'),
    run.result?.score !== null && run.result?.score !== undefined && `score ${measure(run.result.score)}`,
    run.result?.overallScore !== null &&
      run.result?.overallScore !== undefined &&
      `criteria ${measure(run.result.overallScore)}`,
    run.ending,
  ].filter(Boolean);
  return (
    <Group gap={6} mb="sm">
      {run.connectorId && (
        <Text size="sm" component="span">
          on{' '}
          <PageLink to="/connectors/$connectorId" params={{ connectorId: run.connectorId }} inherit>
            {run.connectorName}
          </PageLink>
          {' · '}
        </Text>
      )}
      {run.scenarioId && (
        <>
          <PageLink to="/scenarios/$scenarioId" params={{ scenarioId: run.scenarioId }} size="sm">
            scenario
          </PageLink>
          <Text size="sm" c="dimmed" component="span">
            ·
          </Text>
        </>
      )}
      <Text size="sm" c="dimmed">
        {facts.join(' · ')}
      </Text>
      {run.completedAt && <RelativeTime at={run.completedAt} />}
    </Group>
  );
}

const NEITHER: Record<string, string | undefined> = {
  error: 'An error is neither a pass nor a failure; the run is in no pass rate of scored runs.',
  unasserted: 'Nothing was checked: the run neither passed nor failed, and is in no rate.',
};

function Reason({ run }: { run: Run }) {
  const { result } = run;
  if (!result || result.outcome === 'pass') return null;
  const { color, icon: OutcomeIcon, word } = OUTCOME_STYLES[result.outcome];
  const title = result.fault ? `${word}: fault of the ${faultText(result.fault)}` : word;
  return (
    <Alert variant="outline" color={color} icon={<OutcomeIcon aria-hidden />} title={title} mb="md">
      <Text size="sm" className={classes.reason} dir="auto">
        {run.error ?? result.reason}
      </Text>
      <Failures run={run} />
      {run.output?.traceback && <Folded title="Traceback" text={run.output.traceback} />}
      {NEITHER[result.outcome] && (
        <Text size="xs" mt={4}>
          {NEITHER[result.outcome]}
        </Text>
      )}
    </Alert>
  );
}

const MOST_FAILURES = 5;

/** The evaluators that decided, each with the turn it did so on. */
function Failures({ run }: { run: Run }) {
  const failures = failuresOf(resultsOf(run));
  if (failures.length === 0) return null;
  return (
    <List size="sm" mt={6} spacing={2} listStyleType="none" aria-label="Evaluators that did not pass">
      {failures.slice(0, MOST_FAILURES).map((result) => (
        <List.Item key={keyOf(result)}>
          <Group gap={6}>
            <OutcomeBadge standing={standingOfResult(result)} label={titleOf(result)} />
            <Text span size="sm">
              {whenText(result)} · <TurnLink result={result} />
            </Text>
          </Group>
        </List.Item>
      ))}
      {failures.length > MOST_FAILURES && (
        <List.Item>and {failures.length - MOST_FAILURES} more in the table of assertions</List.Item>
      )}
    </List>
  );
}

function Actions({ run, attempts }: { run: Run; attempts: number }) {
  const navigate = useNavigate();
  const changed = async () => {
    await invalidate(['runs'], ['executions']);
  };
  const retry = useMutation({
    mutationFn: () => retryRun(run.id),
    onSuccess: async () => {
      notify('Queued again as a new attempt');
      await navigate({ to: '/runs/$runId', params: { runId: run.id } });
      await changed();
    },
    onError: notifyProblem,
  });
  const cancel = useMutation({
    mutationFn: () => cancelRun(run.id),
    onSuccess: changed,
    onError: notifyProblem,
  });
  return (
    <>
      {attempts > 1 && (
        <Select
          aria-label="Attempt"
          w={130}
          allowDeselect={false}
          value={String(run.attempt)}
          data={Array.from({ length: attempts }, (_, place) => ({
            value: String(place + 1),
            label: `Attempt ${place + 1}`,
          }))}
          onChange={(value) =>
            void navigate({
              to: '/runs/$runId',
              params: { runId: run.id },
              search: { attempt: Number(value) },
            })
          }
        />
      )}
      {run.status === 'error' && (
        <Button loading={retry.isPending} onClick={() => retry.mutate()}>
          Retry
        </Button>
      )}
      {(run.status === 'queued' || run.status === 'running') && (
        <Button variant="default" loading={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel
        </Button>
      )}
      <Button
        variant="default"
        component="a"
        href={`/api/runs/${run.id}?attempt=${run.attempt}`}
        download={`run-${run.id}.json`}
      >
        Download
      </Button>
    </>
  );
}
