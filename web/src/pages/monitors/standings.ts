// How a monitor may stand, in words.
import type { Schemas } from '../../api/client';

type Standing = Schemas['MonitorSeries']['standing'];

export const STANDINGS: Record<Standing, { label: string; color: string }> = {
  disabled: { label: 'off', color: 'gray' },
  learning: { label: 'learning', color: 'blue' },
  'in-band': { label: 'in its band', color: 'green' },
  'left-band': { label: 'left its band', color: 'red' },
  unasserted: { label: 'nothing asserted', color: 'red' },
  'too-low': { label: 'rate too low to test', color: 'orange' },
};
