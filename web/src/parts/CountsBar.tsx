// The outcomes of many runs as one bar. The figures beside it say the same in words.
import { Group, Progress, Stack, Text } from '@mantine/core';
import type { Schemas } from '../api/client';
import { count, plural } from './numbers';
import { OUTCOME_STYLES } from './OutcomeBadge';
import type { Standing } from './outcome';

type Counts = Schemas['Counts'];

const PARTS: [Standing, (counts: Counts) => number][] = [
  ['pass', (counts) => counts.passed],
  ['unasserted', (counts) => counts.unasserted],
  ['fail', (counts) => counts.failed],
  ['error', (counts) => counts.errored],
  ['cancelled', (counts) => counts.cancelled],
  ['running', (counts) => counts.running],
  ['queued', (counts) => counts.queued],
];

interface Props {
  counts: Counts;
  size?: 'sm' | 'md' | 'lg';
  /** Without the figures, where they stand elsewhere */
  bare?: boolean;
}

/** The parts that are not empty, in the order of the bar. */
function partsOf(counts: Counts): [Standing, number][] {
  return PARTS.map(([standing, of]): [Standing, number] => [standing, of(counts)]).filter(([, n]) => n > 0);
}

/** The counts in words: 3 pass, 1 fail */
export function countsText(counts: Counts): string {
  const parts = partsOf(counts).map(
    ([standing, n]) => `${count(n)} ${OUTCOME_STYLES[standing].word.toLowerCase()}`,
  );
  return parts.join(', ') || plural(0, 'run');
}

export function CountsBar({ counts, size = 'md', bare = false }: Props) {
  const parts = partsOf(counts);
  return (
    <Stack gap={4} miw={120}>
      <Progress.Root size={size} role="img" aria-label={countsText(counts)}>
        {parts.map(([standing, n]) => (
          <Progress.Section
            key={standing}
            value={(100 * n) / Math.max(1, counts.total)}
            color={standing === 'queued' ? 'transparent' : `${OUTCOME_STYLES[standing].color}.6`}
            withAria={false}
          />
        ))}
      </Progress.Root>
      {!bare && (
        <Group gap="xs" aria-hidden>
          {parts.map(([standing, n]) => (
            <Count key={standing} standing={standing} number={n} />
          ))}
        </Group>
      )}
    </Stack>
  );
}

function Count({ standing, number }: { standing: Standing; number: number }) {
  const { icon: OutcomeIcon, word, color } = OUTCOME_STYLES[standing];
  return (
    <Group gap={3} wrap="nowrap" title={word}>
      <OutcomeIcon size={13} color={`var(--mantine-color-${color}-6)`} />
      <Text span size="xs">
        {count(number)}
      </Text>
    </Group>
  );
}
