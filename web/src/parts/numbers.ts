// Numbers and times as people read them.

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–';
  const value = share * 100;
  // 99.6 % is not 100 %, and 0.4 % is not nothing.
  if (value > 99 && value < 100) return `${(Math.floor(value * 10) / 10).toFixed(1)}%`;
  if (value > 0 && value < 1) return `${(Math.ceil(value * 10) / 10).toFixed(1)}%`;
  return `${Math.round(value)}%`;
}

/** How likely something is by chance: 0.032 is 3.2 %. */
export function chance(p: number): string {
  return p < 0.001 ? 'under 0.1\u00a0%' : `${Number((p * 100).toPrecision(2))}\u00a0%`;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return '<1 ms';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

const counting = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : counting.format(value);
}

export function compact(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : short.format(value);
}

const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });

/** US dollars; what is less than a cent keeps two digits of its own. */
export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value !== 0 && Math.abs(value) < 0.01 ? `$${Number(value.toPrecision(2))}` : money.format(value);
}

/** A score or measurement: whole numbers as they are, others with up to three digits. */
export function measure(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(3)));
}

export function plural(number: number, noun: string, many = `${noun}s`): string {
  return `${count(number)} ${number === 1 ? noun : many}`;
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

export function ago(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1_000;
  if (Math.abs(seconds) > 7 * 86_400) return new Date(iso).toLocaleDateString('en-CA');
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return 'just now';
}
