// One monitor: how it stands, its rate over time with control limits, and its alarms.
import { Badge, Group, Paper, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { IconEdit, IconHeartRateMonitor } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { Schemas } from '../../api/client';
import { monitorQuery, monitorSeriesQuery, type StoredMonitor } from '../../api/monitors';
import { executionsQuery } from '../../api/runs';
import { RateChart } from '../../parts/charts';
import { seriesPoints } from '../../parts/charts/points';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { ExecutionsTable } from '../../parts/ExecutionsTable';
import { Loading } from '../../parts/Loading';
import { LinkButton, PageLink } from '../../parts/links';
import { count, percent } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { Alarms } from './Alarms';
import { STANDINGS } from './standings';

const route = getRouteApi('/monitors/$monitorId');
const SPANS = { hours: { days: 2, bucket: 'hour' }, days: { days: 60, bucket: 'day' } } as const;

export default function MonitorPage() {
  const { monitorId } = route.useParams();
  const monitor = useQuery(monitorQuery(monitorId));
  const [span, setSpan] = useState<keyof typeof SPANS>('days');
  const series = useQuery(monitorSeriesQuery(monitorId, SPANS[span]));
  if (monitor.error) return <ErrorState error={monitor.error} onRetry={() => void monitor.refetch()} />;
  if (series.error) return <ErrorState error={series.error} onRetry={() => void series.refetch()} />;
  if (!monitor.data) return <Loading />;
  return (
    <>
      <Head monitor={monitor.data} series={series.data} />
      {!series.data && <Loading />}
      {series.data && (
        <Stack>
          <Block title="Pass rate over time">
            <SegmentedControl
              size="xs"
              aria-label="Length of a point"
              data={[
                { value: 'days', label: 'Days' },
                { value: 'hours', label: 'Hours' },
              ]}
              value={span}
              onChange={(value) => setSpan(value as keyof typeof SPANS)}
            />
            <Series series={series.data} />
          </Block>
          <Block title="Alarms">
            <Alarms monitorId={monitorId} />
          </Block>
          <Block title="Conversations, by day">
            <Days name={monitor.data.name} />
          </Block>
        </Stack>
      )}
    </>
  );
}

type HeadProps = { monitor: StoredMonitor; series: Schemas['MonitorSeries'] | undefined };

function Head({ monitor, series }: HeadProps) {
  const standing = series && STANDINGS[series.standing];
  return (
    <PageTitle
      title={monitor.name}
      above={[
        <PageLink key="all" to="/monitors">
          Monitors
        </PageLink>,
      ]}
      beside={
        standing && (
          <Badge variant="light" color={standing.color}>
            {standing.label}
          </Badge>
        )
      }
      actions={
        <LinkButton
          to="/monitors/$monitorId/edit"
          params={{ monitorId: monitor.id }}
          variant="default"
          leftSection={<IconEdit size={16} aria-hidden />}
        >
          Edit
        </LinkButton>
      }
    />
  );
}

function Series({ series }: { series: Schemas['MonitorSeries'] }) {
  const { total } = series;
  if (series.points.length === 0) {
    return (
      <EmptyState icon={IconHeartRateMonitor} title="No conversations yet">
        Conversations that fit the filter appear here when they are complete.
      </EmptyState>
    );
  }
  return (
    <>
      <RateChart points={seriesPoints(series)} of="stretches of time" />
      <Group gap="lg" mt="xs">
        <Text size="sm">
          {percent(total.rate.rate)} of {count(total.rate.of)} conversations passed
        </Text>
        <Text size="sm" c="dimmed">
          In no rate: {total.errored} errored, {total.unasserted} unasserted, {total.notJudged} not judged
        </Text>
        <Text size="sm" c="dimmed">
          {series.expected === null
            ? `Learning what to expect: ${series.learnt} of ${series.learnFrom}`
            : `Expected ${percent(series.expected)}; evidence for a drop ${percent(series.evidence)}`}
        </Text>
        {series.judgeCallsPerDay !== null && (
          <Text size="sm" c="dimmed">
            Judge calls today: {count(series.judgeCallsToday)} of {count(series.judgeCallsPerDay)}
          </Text>
        )}
      </Group>
    </>
  );
}

function Days({ name }: { name: string }) {
  const days = useQuery(executionsQuery({ label: [`monitor=${name}`], limit: 30 }));
  if (days.error) return <ErrorState error={days.error} onRetry={() => void days.refetch()} />;
  if (!days.data) return <Loading rows={2} />;
  return <ExecutionsTable executions={days.data.items} />;
}

function Block({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="sm" component="section" aria-label={title}>
      <Title order={2} size="h4" mb="xs">
        {title}
      </Title>
      {children}
    </Paper>
  );
}
