// Says of an execution that it is not the whole eval, or that no agent was called for it.
import { Badge, Group } from '@mantine/core';
import type { Schemas } from '../api/client';

type Whole = Pick<Schemas['Execution'], 'partial' | 'replayed' | 'source'>;

export function Wholeness({ execution }: { execution: Whole }) {
  if (!execution.partial && !execution.replayed && execution.source === 'live') return null;
  return (
    <Group gap={4} wrap="wrap">
      {execution.partial && <Mark>{`partial: ${execution.partial}`}</Mark>}
      {execution.source !== 'live' && <Mark short>{execution.source}</Mark>}
      {execution.replayed && <Mark short>replayed</Mark>}
    </Group>
  );
}

/** A short one is never cut off; a long one may be. */
function Mark({ short, children }: { short?: boolean; children: string }) {
  return (
    <Badge
      variant="default"
      size="sm"
      miw={short ? 'max-content' : undefined}
      title="Left out of trends and default baselines"
    >
      {children}
    </Badge>
  );
}
