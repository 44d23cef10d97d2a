// How a scenario did: by connector over time, how flaky it is, and the runs that failed last.
import { Group, Stack, Table, Text } from '@mantine/core';
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
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { Rate } from '../../parts/Rate';
import { RelativeTime } from '../../parts/RelativeTime';
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
      <RecentFailures scenarioId={scenarioId} />
    </Stack>
  );
}

function RecentFailures({ scenarioId }: { scenarioId: string }) {
  const runs = useQuery(runsQuery({ scenarioId, outcome: 'fail', limit: 10 }));
  const items = runs.data?.items ?? [];
  return (
    <Block title="Recent failures">
      {runs.data && items.length === 0 && (
        <Text size="sm" c="dimmed">
          None.
        </Text>
      )}
      {items.length > 0 && (
        <Table aria-label="Recent failures" layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Run</Table.Th>
              <Table.Th>Why</Table.Th>
              <Table.Th w={110}>When</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {items.map((run) => (
              <Table.Tr key={run.id}>
                <Table.Td>
                  <PageLink to="/runs/$runId" params={{ runId: run.id }} size="sm">
                    {[run.caseName, run.personaName, run.connectorName, `repetition ${run.repetition}`]
                      .filter(Boolean)
                      .join(' · ')}
                  </PageLink>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" lineClamp={2} style={{ overflowWrap: 'anywhere' }}>
                    {run.result?.reason}
                  </Text>
                </Table.Td>
                <Table.Td>
                  <RelativeTime at={run.createdAt} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Block>
  );
}
