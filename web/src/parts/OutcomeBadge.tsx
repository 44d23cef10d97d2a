// An outcome by icon, word and colour together: never by colour alone.
import type { MantineColor } from '@mantine/core';
import {
  type Icon,
  IconAlertTriangle,
  IconBan,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconClock,
  IconHourglass,
  IconPlayerPlay,
  IconPlayerSkipForward,
} from '@tabler/icons-react';
import type { CSSProperties } from 'react';
import classes from './OutcomeBadge.module.css';
import type { Standing } from './outcome';

interface OutcomeStyle {
  word: string;
  color: MantineColor;
  icon: Icon;
}

export const OUTCOME_STYLES: Record<Standing, OutcomeStyle> = {
  pass: { word: 'Pass', color: 'teal', icon: IconCircleCheck },
  fail: { word: 'Fail', color: 'red', icon: IconCircleX },
  error: { word: 'Error', color: 'orange', icon: IconAlertTriangle },
  queued: { word: 'Queued', color: 'gray', icon: IconClock },
  running: { word: 'Running', color: 'blue', icon: IconPlayerPlay },
  cancelled: { word: 'Cancelled', color: 'gray', icon: IconBan },
  pending: { word: 'Pending', color: 'gray', icon: IconHourglass },
  skipped: { word: 'Skipped', color: 'gray', icon: IconPlayerSkipForward },
  unasserted: { word: 'Not checked', color: 'gray', icon: IconCircleDashed },
};

interface Props {
  standing: Standing;
  /** Instead of the standing's own word; the icon still tells it apart */
  label?: string;
  size?: 'sm' | 'lg';
}

function colors(color: MantineColor): CSSProperties {
  return {
    '--strong': `var(--mantine-color-${color}-9)`,
    '--pale': `var(--mantine-color-${color}-2)`,
    '--tint': `var(--mantine-color-${color}-light)`,
  } as CSSProperties;
}

export function OutcomeBadge({ standing, label, size = 'sm' }: Props) {
  const { word, color, icon: OutcomeIcon } = OUTCOME_STYLES[standing];
  return (
    <span className={classes.badge} data-size={size} style={colors(color)}>
      <OutcomeIcon size={size === 'lg' ? 16 : 13} stroke={2} aria-label={label ? word : undefined} />
      {label ?? word}
    </span>
  );
}
