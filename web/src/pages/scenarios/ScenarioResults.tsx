// How a scenario did: by connector over time, how flaky it is, and the runs that failed last.
import { Group, Stack, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { scenarioHistoryQuery } from '../../api/figures';
import { runsQuery } from '../../api/runs';
import { Block } from '../../parts/Block';
import { RateChart } from '../../parts/charts';
import { historyPoints } from '../../parts/charts/points';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { plural } from '../../parts/numbers';
import { Rate } from '../../parts/Rate';
import { RecentFailures } from '../../parts/RecentFailures';
import { Tip } from '../../parts/Tip';

export function ScenarioResults({ scenarioId }: { scenarioId: string }) {
  const history = useQuery(scenarioHistoryQuery(scenarioId));
  if (history.error) return <ErrorState error={history.error} onRetry={() => void history.refetch()} />;
  if (!history.data) return <Loading rows={8} />;
  const { connectors, flaky } = history.data;
  if (connectors.length === 0) {
    return (
      <EmptyState icon={IconPlayerPlay} title="Never ran">
        Press Try it, or run an eval that has this scenario.
      </EmptyState>
    );
  }
  return (
    <Stack gap="md">
      {connectors.map((one) => (
        <Block
          key={one.connectorId ?? one.connectorName}
          title={`On ${one.connectorName ?? 'a connector'}`}
          hint={plural(one.points.length, 'execution')}
          beside={<Rate rate={one.rate} />}
        >
          <RateChart points={historyPoints(one.points)} />
        </Block>
      ))}
      <Block
        title="Flakiness"
        hint={
          <>
            In how many executions its repetitions <Tip term="flaky">disagreed</Tip>
          </>
        }
      >
        {flaky.length === 0 ? (
          <Text size="sm" c="dimmed">
            Its repetitions always agreed.
          </Text>
        ) : (
          <Stack gap={4}>
            {flaky.map((one) => (
              <Group key={one.subject.label} justify="space-between">
                <Text size="sm">{one.subject.label}</Text>
                <Text size="sm" className="figures">
                  {one.flakyExecutions} of {plural(one.executions, 'execution')}
                </Text>
              </Group>
            ))}
          </Stack>
        )}
      </Block>
      <Failures scenarioId={scenarioId} />
    </Stack>
  );
}

function Failures({ scenarioId }: { scenarioId: string }) {
  const runs = useQuery(runsQuery({ scenarioId, outcome: 'fail', limit: 10 }));
  const failures = runs.data?.items.map((run) => ({
    key: run.id,
    runId: run.id,
    label: [run.caseName, run.personaName, run.connectorName, `repetition ${run.repetition}`]
      .filter(Boolean)
      .join(' · '),
    reason: run.result?.reason,
    at: run.createdAt,
  }));
  return <RecentFailures failures={failures} none="None." />;
}
