// Grey bars where content will be; they take its place, so that nothing jumps.
import { Skeleton, Stack, VisuallyHidden } from '@mantine/core';

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <Stack gap="sm" aria-busy>
      <VisuallyHidden role="status">Loading</VisuallyHidden>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars are all alike and never move
        <Skeleton key={row} height={row === 0 ? 28 : 18} width={row === 0 ? '40%' : '100%'} />
      ))}
    </Stack>
  );
}
