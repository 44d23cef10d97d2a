// One eval: what it is made of, how it did over time, and every scenario in every execution.
import { Group, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core';
import { IconEdit, IconPlayerPlay } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Schemas } from '../../api/client';
import { connectorsQuery, evalQuery, scenariosQuery } from '../../api/definitions';
import { baselinesQuery, executionStatsQuery, matrixQuery } from '../../api/figures';
import { executionsQuery } from '../../api/runs';
import { Block } from '../../parts/Block';
import { BrokenPlugins } from '../../parts/BrokenPlugins';
import { RateChart, TokensChart } from '../../parts/charts';
import { pointsOf } from '../../parts/charts/points';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { ExecutionsTable } from '../../parts/ExecutionsTable';
import { Loading } from '../../parts/Loading';
import { LinkButton, PageLink } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';
import { useSearchParam } from '../../parts/useSearchParam';
import { Baselines } from './Baselines';
import { Matrix } from './Matrix';
import { RunButton } from './RunButton';

const route = getRouteApi('/evals/$evalId');

export default function EvalPage() {
  const { evalId } = route.useParams();
  const evaluation = useQuery(evalQuery(evalId));
  if (evaluation.error)
    return <ErrorState error={evaluation.error} onRetry={() => void evaluation.refetch()} />;
  if (!evaluation.data) return <Loading />;
  return (
    <>
      <PageTitle
        title={evaluation.data.name}
        above={[
          <PageLink key="all" to="/evals">
            Evals
          </PageLink>,
        ]}
        actions={
          <>
            <LinkButton
              to="/evals/$evalId/edit"
              params={{ evalId }}
              variant="default"
              leftSection={<IconEdit size={16} aria-hidden />}
            >
              Edit
            </LinkButton>
            <RunButton evaluation={evaluation.data} />
          </>
        }
      />
      <BrokenPlugins />
      <Stack>
        <Parts evaluation={evaluation.data} />
        <History evalId={evalId} />
      </Stack>
    </>
  );
}

function Parts({ evaluation }: { evaluation: Schemas['StoredEval'] }) {
  const scenarios = useQuery(scenariosQuery);
  const connectors = useQuery(connectorsQuery);
  if (!scenarios.data || !connectors.data) return <Loading rows={2} />;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <Block title="Scenarios">
        <Group gap="sm">
          {evaluation.scenarioIds.map((id) => (
            <PageLink key={id} to="/scenarios/$scenarioId" params={{ scenarioId: id }} size="sm">
              {nameIn(scenarios.data, id)}
            </PageLink>
          ))}
        </Group>
      </Block>
      <Block title="Connectors">
        <Group gap="sm">
          {evaluation.connectorIds.map((id) => (
            <PageLink key={id} to="/connectors/$connectorId" params={{ connectorId: id }} size="sm">
              {nameIn(connectors.data, id)}
            </PageLink>
          ))}
        </Group>
        <Text size="xs" c="dimmed" mt={4}>
          Repetitions: {evaluation.repetitions ?? 'project default'}
        </Text>
      </Block>
    </SimpleGrid>
  );
}

function nameIn(items: { id: string; name: string }[] | undefined, id: string): string {
  return items?.find((item) => item.id === id)?.name ?? id;
}

function History({ evalId }: { evalId: string }) {
  const executions = useQuery(executionsQuery({ evalId, limit: 20 }));
  // All parts come at once, so that none moves another.
  const parts = [
    useQuery(matrixQuery(evalId, 12)),
    useQuery(baselinesQuery(evalId)),
    useQuery(executionStatsQuery({ evalId, limit: 200 })),
  ];
  if (executions.error) {
    return <ErrorState error={executions.error} onRetry={() => void executions.refetch()} />;
  }
  if (!executions.data || parts.some((part) => part.isPending)) return <Loading rows={12} />;
  if (executions.data.items.length === 0) {
    return (
      <EmptyState icon={IconPlayerPlay} title="Not run yet">
        Press Run: every scenario runs against every connector, and the results appear here.
      </EmptyState>
    );
  }
  return (
    <>
      <OverTime evalId={evalId} />
      <Baselines evalId={evalId} executions={executions.data.items} />
      <Block title="Scenarios by executions">
        <Matrix evalId={evalId} />
      </Block>
      <Block title="Executions">
        <ExecutionsTable executions={executions.data.items} />
      </Block>
    </>
  );
}

const RANGES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: 'all', label: 'All' },
];

function OverTime({ evalId }: { evalId: string }) {
  const [chosen, setRange] = useSearchParam('range');
  const range = RANGES.some(({ value }) => value === chosen) ? chosen : 'all';
  const since = useMemo(() => {
    const today = new Date().setHours(0, 0, 0, 0);
    return range === 'all' ? undefined : new Date(today - Number(range) * 86_400_000).toISOString();
  }, [range]);
  const figures = useQuery(executionStatsQuery({ evalId, limit: 200, since }));
  const points = useMemo(() => pointsOf(figures.data ?? []), [figures.data]);
  const chooser = (
    <SegmentedControl aria-label="Range" size="xs" data={RANGES} value={range} onChange={setRange} />
  );
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Block title="Pass rate over time" hint="A point opens its execution" beside={chooser}>
        <RateChart points={points} />
      </Block>
      <Block title="Tokens over time" hint="What the agent used, where it is known">
        <TokensChart points={points} />
      </Block>
    </SimpleGrid>
  );
}
