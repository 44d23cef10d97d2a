// An outcome by icon, word and colour together: never by colour alone.
import { Badge, type MantineColor } from '@mantine/core';
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
  size?: 'xs' | 'sm' | 'md' | 'lg';
}

/** The word must be read on a tint of its own colour in both schemes. */
function wordColor(color: MantineColor): string {
  const dark = `color-mix(in srgb, var(--mantine-color-${color}-9) 75%, black)`;
  return `light-dark(${dark}, var(--mantine-color-${color}-2))`;
}

export function OutcomeBadge({ standing, label, size = 'md' }: Props) {
  const { word, color, icon: OutcomeIcon } = OUTCOME_STYLES[standing];
  return (
    <Badge
      variant="light"
      color={color}
      size={size}
      tt="none"
      miw="max-content"
      c={wordColor(color)}
      leftSection={
        <OutcomeIcon size={size === 'lg' ? 16 : 13} stroke={2} aria-label={label ? word : undefined} />
      }
    >
      {label ?? word}
    </Badge>
  );
}
