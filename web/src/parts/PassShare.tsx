// How many of how many passed, as a bar and in words: 15 of 18 does not look like 0 of 1.
import { Group, Text } from '@mantine/core';
import { count } from './numbers';
import classes from './Parts.module.css';

interface Counted {
  passed: number;
  failed: number;
  errored: number;
}

const COLORS = { passed: 'teal', failed: 'red', errored: 'orange' } as const;

export function PassShare({ runs }: { runs: Counted | null }) {
  if (!runs) {
    return (
      <Text span size="sm" c="dimmed">
        –
      </Text>
    );
  }
  const total = runs.passed + runs.failed + runs.errored;
  return (
    <Group gap={8} wrap="nowrap" component="span" style={{ display: 'inline-flex' }}>
      <ShareBar runs={runs} />
      <Text span size="sm" style={{ whiteSpace: 'nowrap' }} className="figures">
        {count(runs.passed)} of {count(total)}
        {runs.errored > 0 && (
          <Text span size="xs" c="dimmed">
            {' '}
            · {count(runs.errored)} errored
          </Text>
        )}
      </Text>
    </Group>
  );
}

/** The bar alone, for where the figures stand beside it. */
export function ShareBar({ runs, width }: { runs: Counted; width?: number }) {
  const total = runs.passed + runs.failed + runs.errored;
  let left = 0;
  return (
    <span className={classes.share} style={{ width }} aria-hidden>
      {(['passed', 'failed', 'errored'] as const).map((key) => {
        const share = total ? (100 * runs[key]) / total : 0;
        const part = (
          <span
            key={key}
            style={{
              left: `${left}%`,
              width: `${share}%`,
              background: `var(--mantine-color-${COLORS[key]}-6)`,
            }}
          />
        );
        left += share;
        return part;
      })}
    </span>
  );
}

/** A rate on a scale from 0 to 1 with its interval. */
export function RateRange({ rate, low, high }: { rate: number; low: number; high: number }) {
  return (
    <div className={classes.range} aria-hidden>
      <span style={{ left: `${100 * low}%`, width: `${100 * Math.max(0.005, high - low)}%` }} />
      <b style={{ left: `${100 * rate}%` }} />
    </div>
  );
}
