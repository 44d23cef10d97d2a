// The pass rate over executions or time, with its 95 % interval as a band and the limits of chance, if any.
import { Box, Text } from '@mantine/core';
import {
  Area,
  CartesianGrid,
  ComposedChart,
  Line,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';
import { percent } from '../numbers';
import { ChartCard, GRID, moment, TICK } from './axes';
import type { Point } from './points';

type Props = { points: Point[]; height?: number; of?: string };

export default function RateChart({ points, height = 200, of = 'executions' }: Props) {
  const last = points.at(-1);
  const summary = last
    ? `Pass rate over ${points.length} ${of}; the last one ${percent(last.rate)}, ${last.passed} of ${last.of}.`
    : `No ${of} yet.`;
  const limited = points.some((point) => typeof point.lowLimit === 'number');
  return (
    <Box role="img" aria-label={summary} h={height}>
      <ResponsiveContainer>
        <ComposedChart
          data={points}
          margin={{ top: 8, right: 8, bottom: 0, left: -18 }}
          accessibilityLayer={false}
        >
          <CartesianGrid stroke={GRID} vertical={false} />
          <XAxis
            dataKey="id"
            tickFormatter={(id) => moment(points, id)}
            tick={TICK}
            stroke={GRID}
            minTickGap={24}
          />
          <YAxis domain={[0, 1]} tickFormatter={percent} tick={TICK} stroke={GRID} ticks={[0, 0.5, 1]} />
          <Tooltip content={<Details />} isAnimationActive={false} />
          <Area
            dataKey="interval"
            fill="var(--mantine-color-indigo-4)"
            fillOpacity={0.25}
            stroke="none"
            isAnimationActive={false}
            connectNulls
          />
          {limited &&
            (['lowLimit', 'highLimit'] as const).map((limit) => (
              <Line
                key={limit}
                dataKey={limit}
                type="step"
                stroke="var(--mantine-color-orange-6)"
                strokeDasharray="4 3"
                dot={false}
                isAnimationActive={false}
                connectNulls
              />
            ))}
          <Line
            dataKey="rate"
            stroke="var(--mantine-color-indigo-5)"
            strokeWidth={2}
            dot={{ r: 3 }}
            isAnimationActive={false}
            connectNulls
          />
        </ComposedChart>
      </ResponsiveContainer>
    </Box>
  );
}

function Details({ payload }: { payload?: readonly { payload?: Point }[] }) {
  const point = payload?.[0]?.payload;
  if (!point) return null;
  return (
    <ChartCard title={point.name} at={point.at}>
      <Text size="xs">
        {percent(point.rate)} passed, {point.passed} of {point.of}
      </Text>
      {point.interval && (
        <Text size="xs">
          95 % interval {percent(point.interval[0])} to {percent(point.interval[1])}
        </Text>
      )}
      {typeof point.lowLimit === 'number' && (
        <Text size="xs">
          control limits {percent(point.lowLimit)} to {percent(point.highLimit ?? 1)}
        </Text>
      )}
      {point.errored > 0 && <Text size="xs">{point.errored} errored, in no rate</Text>}
    </ChartCard>
  );
}
