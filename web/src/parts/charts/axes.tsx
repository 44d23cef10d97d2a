// What all charts share: quiet grid and ticks, days under the axis, a card with the details.
import { Paper, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { exactTime, lazily } from '../numbers';
import type { Point } from './points';

export const GRID = 'var(--mantine-color-default-border)';
export const TICK = { fontSize: 11, fill: 'var(--mantine-color-dimmed)' };

const days = lazily(() => new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' }));
const hours = lazily(() => new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' }));
const SHORT = 36 * 3_600_000;

/** The title of the axis of values, turned beside it. */
export const TITLE = {
  angle: -90,
  position: 'insideLeft',
  style: { textAnchor: 'middle', fontSize: 11, fill: 'var(--mantine-color-dimmed)' },
} as const;

/** What stands under the axis: a day, or a time where all points are of about one day. */
export function moment(points: Point[], at: number): string {
  const span = (points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0);
  return (span < SHORT ? hours : days)().format(at);
}

export function ChartCard({ title, at, children }: { title: string; at: number; children: ReactNode }) {
  return (
    <Paper withBorder p="xs" shadow="sm">
      <Text size="xs" fw={600}>
        {title}
      </Text>
      <Text size="xs" c="dimmed">
        {exactTime(at)}
      </Text>
      {children}
    </Paper>
  );
}
