// A share over time with its 95% interval as a band, and the limits of chance, if any; a point of an
// execution leads to it.
import { Box, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
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
import { measure, percent } from '../numbers';
import { ChartCard, GRID, moment, TICK, TITLE } from './axes';
import classes from './Charts.module.css';
import type { Point } from './points';

interface Props {
  points: Point[];
  height?: number;
  /** What the points are */
  of?: string;
  /** What the share is of; the title of the axis */
  title?: string;
  /** The values are no shares but numbers of this unit */
  unit?: string;
}

export default function RateChart({
  points,
  height = 220,
  of = 'executions',
  title = 'Pass rate',
  unit,
}: Props) {
  const navigate = useNavigate();
  const last = points.at(-1);
  const shown = unit === undefined ? percent : measure;
  const summary = last
    ? `${title} over ${points.length} ${of}; the last one ${shown(last.rate)}${unit === undefined ? `, ${last.passed} of ${last.of}` : ''}.`
    : `No ${of} yet.`;
  const limited = points.some((point) => typeof point.lowLimit === 'number');
  return (
    <Box role="img" aria-label={summary} h={height} pos="relative">
      <Legend title={title} />
      <ResponsiveContainer>
        <ComposedChart
          data={points}
          margin={{ top: 26, right: 16, bottom: 4, left: 4 }}
          accessibilityLayer={false}
          style={limited ? undefined : { cursor: 'pointer' }}
          onClick={({ activeIndex }) => {
            const point = points[Number(activeIndex)];
            // A stretch of time is no execution.
            if (point && !limited)
              void navigate({ to: '/executions/$executionId', params: { executionId: point.id } });
          }}
        >
          <CartesianGrid stroke={GRID} vertical={false} />
          <XAxis
            dataKey="at"
            type="number"
            scale="time"
            domain={['dataMin', 'dataMax']}
            padding={{ left: 12, right: 12 }}
            tickFormatter={(at) => moment(points, at)}
            tick={TICK}
            stroke={GRID}
            minTickGap={32}
          />
          <YAxis
            domain={unit === undefined ? [0, 1] : ['auto', 'auto']}
            tickFormatter={shown}
            tick={TICK}
            stroke={GRID}
            ticks={unit === undefined ? [0, 0.5, 1] : undefined}
            width={60}
            label={{ ...TITLE, value: unit ? `${title} (${unit})` : title }}
          />
          <Tooltip content={<Details title={title} shown={shown} unit={unit} />} isAnimationActive={false} />
          <Area
            name="95% interval"
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
            name={title}
            dataKey="rate"
            stroke="var(--mantine-color-indigo-5)"
            strokeWidth={2}
            dot={{ r: 3.5 }}
            activeDot={{ r: 5 }}
            isAnimationActive={false}
            connectNulls
          />
        </ComposedChart>
      </ResponsiveContainer>
    </Box>
  );
}

function Legend({ title }: { title: string }) {
  return (
    <div className={classes.legend} aria-hidden>
      <span data-mark="line" /> {title} <span data-mark="band" /> 95% interval
    </div>
  );
}

interface DetailsProps {
  title: string;
  shown: (value: number | null) => string;
  unit?: string;
  payload?: readonly { payload?: Point }[];
}

function Details({ title, shown, unit, payload }: DetailsProps) {
  const point = payload?.[0]?.payload;
  if (!point) return null;
  return (
    <ChartCard title={point.name} at={point.at}>
      <Text size="xs">
        {title} {shown(point.rate)} {unit}
        {unit === undefined && `, ${point.passed} of ${point.of}`}
      </Text>
      {point.interval && (
        <Text size="xs">
          95% interval {shown(point.interval[0])} to {shown(point.interval[1])}
        </Text>
      )}
      {typeof point.lowLimit === 'number' && (
        <Text size="xs">
          control limits {percent(point.lowLimit)} to {percent(point.highLimit ?? 1)}
        </Text>
      )}
      {point.errored > 0 && <Text size="xs">{point.errored} errored, in no rate</Text>}
      {typeof point.lowLimit !== 'number' && (
        <Text size="xs" c="dimmed">
          Click to open the execution
        </Text>
      )}
    </ChartCard>
  );
}
