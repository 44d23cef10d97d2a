// An execution in figures: progress, rates with what they rest on, time and where it came from.
import { Group, Paper, SimpleGrid, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client';
import { CountsBar } from '../../parts/CountsBar';
import { compact, count, duration } from '../../parts/numbers';
import { Rate } from '../../parts/Rate';
import { When } from '../../parts/When';
import { rateOf } from './rates';
import type { Counts, Run } from './runs';

type Execution = Schemas['Execution'];

export function Summary({ execution, counts, runs }: { execution: Execution; counts: Counts; runs: Run[] }) {
  const done = counts.total - counts.queued - counts.running;
  return (
    <Paper withBorder p="sm" mb="sm">
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Text size="sm" role="status">
            {count(done)} of {count(counts.total)} runs done
          </Text>
          <Origin execution={execution} />
        </Group>
        <CountsBar counts={counts} size="lg" />
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="xs">
          <Figure label="Passed of scored">
            <Rate rate={rateOf(counts.passed - counts.unasserted, counts.failed)} />
          </Figure>
          <Figure label="Passed of attempted">
            <Rate rate={rateOf(counts.passed - counts.unasserted, counts.failed + counts.errored)} />
          </Figure>
          <Figure label="Time">{took(execution)}</Figure>
          <Figure label="Tokens">
            <Tokens runs={runs} />
          </Figure>
        </SimpleGrid>
      </Stack>
    </Paper>
  );
}

function Figure({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="sm" component="div">
        {children}
      </Text>
    </div>
  );
}

function Tokens({ runs }: { runs: Run[] }) {
  const known = runs.filter((run) => run.totalTokens !== null);
  if (known.length === 0) return <>not reported</>;
  return <>{compact(known.reduce((sum, run) => sum + (run.totalTokens ?? 0), 0))}</>;
}

function took({ startedAt, completedAt }: Execution): string {
  if (!startedAt) return 'not started';
  if (!completedAt) return 'under way';
  return duration(Date.parse(completedAt) - Date.parse(startedAt));
}

function Origin({ execution }: { execution: Execution }) {
  const labels = Object.entries(execution.labels).map(([name, value]) => `${name} ${String(value)}`);
  const told = [execution.trigger && `started by ${execution.trigger}`, ...labels]
    .filter(Boolean)
    .join(' · ');
  return (
    <Text size="sm" c="dimmed" component="div">
      {told} <When at={execution.createdAt} />
    </Text>
  );
}
