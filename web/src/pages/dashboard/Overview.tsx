// Recent executions, the pass rate and tokens over time, and the flakiest and slowest scenarios.
import { Group, Paper, Select, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import type { Schemas } from '../../api/client';
import { evalsQuery, executionStatsQuery, flakiestQuery, statsQuery } from '../../api/queries';
import { RateChart, TokensChart } from '../../parts/charts';
import { pointsOf } from '../../parts/charts/points';
import { ErrorState } from '../../parts/ErrorState';
import { ExecutionsTable } from '../../parts/ExecutionsTable';
import { PageLink } from '../../parts/links';
import { count, duration } from '../../parts/numbers';
import { useSearchParam } from '../../parts/useSearchParam';

const DAYS = 30;
/** In the address: no single eval */
const ALL = 'all';

export function Overview({ recent }: { recent: Schemas['Execution'][] }) {
  const [chosen, choose] = useSearchParam('eval');
  const evalId = chosen === ALL ? null : chosen || (recent.find((one) => one.evalId)?.evalId ?? null);
  const since = useMemo(() => new Date(startOfToday() - DAYS * 86_400_000).toISOString(), []);
  return (
    <Stack>
      <Block title="Recent executions">
        <ExecutionsTable executions={recent} />
      </Block>
      <OverTime evalId={evalId} onChoose={(id) => choose(id ?? ALL)} />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Flakiest since={since} />
        <Slowest since={since} />
      </SimpleGrid>
    </Stack>
  );
}

/** The same all day, so that what was read is not read again. */
function startOfToday(): number {
  return new Date().setHours(0, 0, 0, 0);
}

function OverTime({ evalId, onChoose }: { evalId: string | null; onChoose: (id: string | null) => void }) {
  const evals = useQuery(evalsQuery);
  const figures = useQuery(executionStatsQuery({ evalId: evalId ?? undefined, limit: 60 }));
  const points = useMemo(() => pointsOf(figures.data ?? []), [figures.data]);
  if (figures.error) return <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />;
  const chooser = (
    <Select
      aria-label="Eval shown over time"
      size="xs"
      w={200}
      placeholder="All evals"
      clearable
      data={(evals.data ?? []).map((one) => ({ value: one.id, label: one.name }))}
      value={evalId}
      onChange={onChoose}
    />
  );
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Block title="Pass rate over time" beside={chooser}>
        <RateChart points={points} />
        <Text size="xs" c="dimmed">
          Passed of scored runs; the band is the 95 % interval.
        </Text>
      </Block>
      <Block title="Tokens over time">
        <TokensChart points={points} />
      </Block>
    </SimpleGrid>
  );
}

function Flakiest({ since }: { since: string }) {
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
        columns={['Scenario and connector', 'Flaky executions']}
        none={`In the last ${DAYS} days the repetitions of a scenario always agreed within an execution.`}
      />
    </Block>
  );
}

function Slowest({ since }: { since: string }) {
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
          {columns.map((column) => (
            <Table.Th key={column}>{column}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ scenarioId, name, figure }) => (
          <Table.Tr key={`${scenarioId} ${name}`}>
            <Table.Td>
              {scenarioId ? (
                <PageLink to="/scenarios/$scenarioId" params={{ scenarioId }} size="sm">
                  {name}
                </PageLink>
              ) : (
                name
              )}
            </Table.Td>
            <Table.Td>{figure}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Block({ title, beside, children }: { title: string; beside?: ReactNode; children: ReactNode }) {
  return (
    <Paper withBorder p="sm" component="section" aria-label={title}>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4">
          {title}
        </Title>
        {beside}
      </Group>
      {children}
    </Paper>
  );
}
