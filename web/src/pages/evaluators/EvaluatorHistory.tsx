// How an evaluator did over the newest executions: its rate or value over time, where it is used, what it failed.
import { Group, Table, Text } from '@mantine/core';
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
import { RelativeTime } from '../../parts/RelativeTime';

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
  return (
    <Block title="Recent failures">
      {history.failures.length === 0 ? (
        <Text size="sm" c="dimmed">
          None in the newest executions.
        </Text>
      ) : (
        <Table aria-label="Recent failures" layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Run</Table.Th>
              <Table.Th>Why</Table.Th>
              <Table.Th w={110}>When</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {history.failures.map((failure) => (
              <Table.Tr key={`${failure.runId} ${failure.name}`}>
                <Table.Td>
                  <PageLink to="/runs/$runId" params={{ runId: failure.runId }} size="sm">
                    {failure.subject.label}
                  </PageLink>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" lineClamp={2} style={{ overflowWrap: 'anywhere' }}>
                    {failure.error && 'Error: '}
                    {failure.reason}
                  </Text>
                </Table.Td>
                <Table.Td>
                  <RelativeTime at={failure.createdAt} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Block>
  );
}
