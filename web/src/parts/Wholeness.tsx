// Says of an execution that it is not the whole eval, or that no agent was called for it.
import { Badge, Group } from '@mantine/core';
import type { Schemas } from '../api/client';

type Whole = Pick<Schemas['Execution'], 'partial' | 'replayed' | 'source'>;

export function Wholeness({ execution }: { execution: Whole }) {
  if (!execution.partial && !execution.replayed && execution.source === 'live') return null;
  return (
    <Group gap={4} wrap="wrap">
      {execution.partial && <Mark>{`partial: ${execution.partial}`}</Mark>}
      {execution.source !== 'live' && <Mark>{execution.source}</Mark>}
      {execution.replayed && <Mark>replayed</Mark>}
    </Group>
  );
}

function Mark({ children }: { children: string }) {
  return (
    <Badge variant="default" size="sm" tt="none" title="Left out of trends and default baselines">
      {children}
    </Badge>
  );
}
