// The agent's tokens over executions.
import { Box, Text } from '@mantine/core';
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts';
import { compact, count } from '../numbers';
import { ChartCard, GRID, moment, TICK, TITLE } from './axes';
import type { Point } from './points';

export default function TokensChart({ points, height = 200 }: { points: Point[]; height?: number }) {
  const known = points.filter((point) => point.tokens !== null);
  const last = known.at(-1);
  const summary = last
    ? `Tokens over ${known.length} executions; the last one used ${count(last.tokens)}.`
    : 'No execution reported tokens.';
  return (
    <Box role="img" aria-label={summary} h={height}>
      <ResponsiveContainer>
        <BarChart data={known} margin={{ top: 8, right: 8, bottom: 0, left: 4 }} accessibilityLayer={false}>
          <CartesianGrid stroke={GRID} vertical={false} />
          <XAxis
            dataKey="id"
            tickFormatter={(id) => moment(known, known.find((one) => one.id === id)?.at ?? 0)}
            tick={TICK}
            stroke={GRID}
            minTickGap={24}
          />
          <YAxis
            tickFormatter={compact}
            tick={TICK}
            stroke={GRID}
            width={60}
            label={{ ...TITLE, value: "Agent's tokens" }}
          />
          <Tooltip content={<Details />} isAnimationActive={false} cursor={{ fill: GRID }} />
          <Bar
            dataKey="tokens"
            fill="var(--mantine-color-indigo-5)"
            maxBarSize={28}
            isAnimationActive={false}
          />
        </BarChart>
      </ResponsiveContainer>
    </Box>
  );
}

function Details({ payload }: { payload?: readonly { payload?: Point }[] }) {
  const point = payload?.[0]?.payload;
  if (!point) return null;
  return (
    <ChartCard title={point.name} at={point.at}>
      <Text size="xs">{count(point.tokens)} tokens</Text>
    </ChartCard>
  );
}
