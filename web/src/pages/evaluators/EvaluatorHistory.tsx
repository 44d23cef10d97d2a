// How an evaluator did over the newest executions: its rate or value over time, where it is used, what it failed.
import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { evaluatorHistoryQuery } from '../../api/figures';
import { Block } from '../../parts/Block';
import { RateChart } from '../../parts/charts';
import { historyPoints } from '../../parts/charts/points';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { Rate } from '../../parts/Rate';
import { RecentFailures } from '../../parts/RecentFailures';

type History = Schemas['EvaluatorHistory'];

export function EvaluatorHistory({ type }: { type: string }) {
  const history = useQuery(evaluatorHistoryQuery(type));
  if (history.error) return <ErrorState error={history.error} onRetry={() => void history.refetch()} />;
  if (!history.data) return <Loading rows={6} />;
  return (
    <>
      <OverTime history={history.data} />
      <Uses history={history.data} />
      {history.data.kind !== 'metric' && <Failures history={history.data} />}
    </>
  );
}

function OverTime({ history }: { history: History }) {
  const measured = history.kind === 'metric';
  if (history.points.length === 0) {
    return (
      <Block title="Over time">
        <Text size="sm" c="dimmed">
          It said nothing in the {plural(history.runsRead, 'run')} of the newest executions.
        </Text>
      </Block>
    );
  }
  return (
    <Block
      title={measured ? 'Mean value over time' : 'Share that passed over time'}
      hint={`From ${plural(history.runsRead, 'run')} of the newest executions${history.moreRuns ? '; older ones are left out' : ''}`}
      beside={history.rate && <Rate rate={history.rate} />}
    >
      <RateChart
        points={historyPoints(history.points)}
        title={measured ? 'Mean' : 'Passed'}
        unit={measured ? '' : undefined}
      />
    </Block>
  );
}

function Uses({ history }: { history: History }) {
  return (
    <Block title="Where it is used">
      {history.uses.length === 0 ? (
        <Text size="sm" c="dimmed">
          In no scenario.
        </Text>
      ) : (
        <Group gap="sm">
          {history.uses.map((use) => (
            <PageLink
              key={use.scenarioId}
              to="/scenarios/$scenarioId"
              params={{ scenarioId: use.scenarioId }}
              size="sm"
            >
              {use.scenarioName}
              {use.times > 1 && ` (${use.times} times)`}
            </PageLink>
          ))}
        </Group>
      )}
    </Block>
  );
}

function Failures({ history }: { history: History }) {
  const failures = history.failures.map(({ runId, name, subject, error, reason, createdAt }) => ({
    key: `${runId} ${name}`,
    runId,
    label: subject.label,
    reason: error ? `Error: ${reason}` : reason,
    at: createdAt,
  }));
  return <RecentFailures failures={failures} none="None in the newest executions." />;
}
