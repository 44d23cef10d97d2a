// What an evaluator is: an assertion that decides, or a metric that only measures.
import { Badge } from '@mantine/core';
import { IconChecklist, IconRuler2 } from '@tabler/icons-react';

export function KindBadge({ kind }: { kind: 'assertion' | 'metric' }) {
  const Icon = kind === 'assertion' ? IconChecklist : IconRuler2;
  return (
    <Badge variant="default" miw="max-content" leftSection={<Icon size={12} aria-hidden />}>
      {kind === 'assertion' ? 'Assertion' : 'Metric'}
    </Badge>
  );
}
