// The flakiest and the slowest scenarios of the last weeks.
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { flakiestQuery, statsQuery } from '../../api/figures';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { PageLink } from '../../parts/links';
import { count, duration } from '../../parts/numbers';

const DAYS = 30;

/** The same all day, so that what was read is not read again. */
function useSince(): string {
  return useMemo(() => new Date(new Date().setHours(0, 0, 0, 0) - DAYS * 86_400_000).toISOString(), []);
}

export function Flakiest() {
  const since = useSince();
  const flakiest = useQuery(flakiestQuery({ since }));
  if (flakiest.error) return <ErrorState error={flakiest.error} onRetry={() => void flakiest.refetch()} />;
  const rows = (flakiest.data ?? []).map((one) => ({
    scenarioId: one.subject.scenarioId,
    name: one.subject.label,
    figure: `${count(one.flakyExecutions)} of ${count(one.executions)}`,
  }));
  return (
    <Block title="Flakiest">
      <Ranking
        rows={rows}
        columns={['Scenario', 'Flaky executions']}
        none={`In the last ${DAYS} days the repetitions of a scenario always agreed within an execution.`}
      />
    </Block>
  );
}

export function Slowest() {
  const since = useSince();
  const slowest = useQuery(statsQuery('scenario', { since, slowest: 5 }));
  if (slowest.error) return <ErrorState error={slowest.error} onRetry={() => void slowest.refetch()} />;
  const rows = (slowest.data ?? []).map((one) => ({
    scenarioId: one.id,
    name: one.name ?? '',
    figure: duration(one.meanLatencyMs),
  }));
  return (
    <Block title="Slowest scenarios">
      <Ranking
        rows={rows}
        columns={['Scenario', 'Mean latency']}
        none={`No run finished in the last ${DAYS} days.`}
      />
    </Block>
  );
}

interface RankingProps {
  rows: { scenarioId: string | null; name: string; figure: string }[];
  columns: [string, string];
  none: string;
}

function Ranking({ rows, columns, none }: RankingProps) {
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {none}
      </Text>
    );
  }
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{columns[0]}</Table.Th>
          <Table.Th ta="right">{columns[1]}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ scenarioId, name, figure }) => (
          <Table.Tr key={name}>
            <Table.Td>
              {scenarioId ? (
                <PageLink to="/scenarios/$scenarioId" params={{ scenarioId }} size="sm">
                  {name}
                </PageLink>
              ) : (
                name
              )}
            </Table.Td>
            <Table.Td ta="right" className="figures">
              {figure}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
