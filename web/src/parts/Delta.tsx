// The difference between two sides: an arrow, its size, and a colour where its direction is better or worse.
import { Text, Tooltip } from '@mantine/core';
import { IconArrowDownRight, IconArrowUpRight, IconEqual } from '@tabler/icons-react';
import { measure, points, sign } from './numbers';

/** Whether more of it is good: of a pass rate yes, of latency no, of a metric nobody knows. */
export type Better = 'more' | 'less' | 'unknown';

interface Props {
  difference: number | null;
  low: number | null;
  high: number | null;
  /** A share is told in points */
  share?: boolean;
  better?: Better;
  size?: 'sm' | 'md';
  format?: (value: number) => string;
}

export function signed(value: number, share = false, format?: (value: number) => string): string {
  return share ? points(value) : `${sign(value)}${(format ?? measure)(Math.abs(value))}`;
}

export function Delta({ difference, low, high, share = false, better = 'more', size = 'sm', format }: Props) {
  if (difference === null) {
    return (
      <Text span size={size} c="dimmed">
        –
      </Text>
    );
  }
  const Arrow = difference > 0 ? IconArrowUpRight : difference < 0 ? IconArrowDownRight : IconEqual;
  const interval = `95% interval ${end(low, share, format)} to ${end(high, share, format)}`;
  return (
    <Tooltip label={interval}>
      <Text
        span
        size={size}
        fw={600}
        tabIndex={0}
        c={colorOf(difference, better)}
        style={{ whiteSpace: 'nowrap' }}
        className="figures"
        aria-label={`${signed(difference, share, format)}, ${interval}`}
      >
        <Arrow size={size === 'md' ? 18 : 15} style={{ verticalAlign: '-3px' }} aria-hidden />{' '}
        {signed(difference, share, format)}
      </Text>
    </Tooltip>
  );
}

/** The end of an interval; one that the data do not bound is null. */
export function end(value: number | null, share = false, format?: (value: number) => string): string {
  return value === null ? 'unbounded' : signed(value, share, format);
}

function colorOf(difference: number, better: Better): string {
  if (difference === 0 || better === 'unknown') return 'var(--mantine-color-text)';
  const good = difference > 0 === (better === 'more');
  return good
    ? 'light-dark(var(--mantine-color-teal-9), var(--mantine-color-teal-3))'
    : 'light-dark(var(--mantine-color-red-9), var(--mantine-color-red-3))';
}
