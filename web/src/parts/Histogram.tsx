// How runs are spread over bins that the server made: a bar for each, with the ends named below.
import { Group, Text, Tooltip } from '@mantine/core';
import type { Schemas } from '../api/client';
import { count, plural } from './numbers';
import classes from './Parts.module.css';

interface Props {
  title: string;
  bins: Schemas['Bin'][];
  /** A value as it is read, with its unit */
  text: (value: number) => string;
}

export function Histogram({ title, bins, text }: Props) {
  const [first, last] = [bins[0], bins.at(-1)];
  if (!first || !last) return null;
  const most = Math.max(...bins.map((bin) => bin.runs));
  const spans = bins.filter((bin) => bin.runs > 0).map((bin) => spanText(bin, text));
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text size="xs" fw={600}>
          {title}
        </Text>
        <Text size="xs" c="dimmed">
          tallest bar: {plural(most, 'run')}
        </Text>
      </Group>
      <div className={classes.histogram} role="img" aria-label={`${title}: ${spans.join('; ')}`}>
        {bins.map((bin) => (
          <Tooltip key={bin.low} label={spanText(bin, text)}>
            <div className={classes.column}>
              <div
                className={bin.runs > 0 ? classes.bar : classes.noBar}
                style={{ height: `${(100 * bin.runs) / most}%` }}
              />
            </div>
          </Tooltip>
        ))}
      </div>
      <Group justify="space-between" gap="xs" mt={2}>
        <Text size="xs" c="dimmed">
          {text(first.low)}
        </Text>
        <Text size="xs" c="dimmed">
          {text(last.high)}
        </Text>
      </Group>
    </div>
  );
}

function spanText(bin: Schemas['Bin'], text: (value: number) => string): string {
  return `${count(bin.runs)} from ${text(bin.low)} to ${text(bin.high)}`;
}
