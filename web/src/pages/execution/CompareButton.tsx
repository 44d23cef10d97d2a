// To the comparison with the eval's baseline; without one, with the execution before.
import { Button } from '@mantine/core';
import { IconArrowsDiff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { baselinesQuery } from '../../api/figures';

export function CompareButton({ execution, evalId }: { execution: Schemas['Execution']; evalId: string }) {
  const baselines = useQuery(baselinesQuery(evalId));
  const baseline = baselines.data?.find((one) => one.executionId !== execution.id);
  const query = new URLSearchParams({ base: baseline?.executionId ?? 'last~1', candidate: execution.id });
  return (
    <Button
      component="a"
      href={`/compare?${query}`}
      variant="default"
      leftSection={<IconArrowsDiff size={16} aria-hidden />}
    >
      Compare
    </Button>
  );
}
