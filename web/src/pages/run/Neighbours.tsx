// To the run before and the one after it in the same execution.
import { Group } from '@mantine/core';
import { IconChevronLeft, IconChevronRight } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { LinkButton } from '../../parts/links';
import { executionRunsQuery } from '../execution/runs';
import type { Run } from './results';

export function Neighbours({ run }: { run: Run }) {
  const runs = useQuery(executionRunsQuery(run.executionId));
  const place = runs.data?.findIndex((one) => one.id === run.id) ?? -1;
  if (!runs.data || place < 0 || runs.data.length < 2) return null;
  return (
    <Group gap={4} wrap="nowrap">
      <Neighbour label="Previous run" runId={runs.data[place - 1]?.id} back />
      <Neighbour label="Next run" runId={runs.data[place + 1]?.id} />
    </Group>
  );
}

function Neighbour({ label, runId, back = false }: { label: string; runId?: string; back?: boolean }) {
  if (!runId) return null;
  const Chevron = back ? IconChevronLeft : IconChevronRight;
  return (
    <LinkButton
      to="/runs/$runId"
      params={{ runId }}
      variant="default"
      px={8}
      aria-label={label}
      title={label}
    >
      <Chevron size={16} aria-hidden />
    </LinkButton>
  );
}
