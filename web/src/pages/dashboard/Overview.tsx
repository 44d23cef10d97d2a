// Recent executions, the pass rate and tokens over time, and the scenarios that deserve a look.
import { Group, Paper, Select, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import type { Schemas } from '../../api/client';
import { evalsQuery, executionStatsQuery, statsQuery } from '../../api/queries';
import { RateChart, TokensChart } from '../../parts/charts';
import { pointsOf } from '../../parts/charts/points';
import { ErrorState } from '../../parts/ErrorState';
import { ExecutionsTable } from '../../parts/ExecutionsTable';
import { PageLink } from '../../parts/links';
import { duration } from '../../parts/numbers';
import { Rate } from '../../parts/Rate';
import { flakiest, slowest } from './ranking';

const DAYS = 30;

export function Overview({ recent }: { recent: Schemas['Execution'][] }) {
  const [evalId, setEvalId] = useState<string | null>(recent.find((one) => one.evalId)?.evalId ?? null);
  const since = useMemo(() => new Date(startOfToday() - DAYS * 86_400_000).toISOString(), []);
  return (
    <Stack>
      <Block title="Recent executions">
        <ExecutionsTable executions={recent} />
      </Block>
      <OverTime evalId={evalId} onChoose={setEvalId} />
      <Scenarios since={since} />
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

function Scenarios({ since }: { since: string }) {
  const figures = useQuery(statsQuery('scenario', { since }));
  if (figures.error) return <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />;
  const all = figures.data ?? [];
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Block title="Flakiest scenarios">
        <Ranked
          rows={flakiest(all)}
          column="Passed of attempted"
          figure={(one) => <Rate rate={one.passRateOfAttempted} errored={one.counts.errored} />}
          none={`Every scenario always passed or always failed in the last ${DAYS} days.`}
        />
      </Block>
      <Block title="Slowest scenarios">
        <Ranked
          rows={slowest(all)}
          column="Mean latency"
          figure={(one) => <Text size="sm">{duration(one.meanLatencyMs)}</Text>}
          none={`No run was finished in the last ${DAYS} days.`}
        />
      </Block>
    </SimpleGrid>
  );
}

interface RankedProps {
  rows: Schemas['Figures'][];
  column: string;
  figure: (one: Schemas['Figures']) => ReactNode;
  none: string;
}

function Ranked({ rows, column, figure, none }: RankedProps) {
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
          <Table.Th>Scenario</Table.Th>
          <Table.Th>{column}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((one) => (
          <Table.Tr key={one.id ?? one.name}>
            <Table.Td>
              {one.id ? (
                <PageLink to="/scenarios/$scenarioId" params={{ scenarioId: one.id }} size="sm">
                  {one.name}
                </PageLink>
              ) : (
                one.name
              )}
            </Table.Td>
            <Table.Td>{figure(one)}</Table.Td>
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
