// Numbers and times as people read them; the command line writes shares alike (base/text.py).

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–';
  const value = share * 100;
  // 99.6% is not 100%, and 0.4% is not nothing.
  if (value > 99 && value < 100) return `${(Math.floor(value * 10) / 10).toFixed(1)}%`;
  if (value > 0 && value < 1) return `${(Math.ceil(value * 10) / 10).toFixed(1)}%`;
  return `${Math.round(value)}%`;
}

/** A difference of shares: 0.031 is +3.1 points. */
export function points(difference: number): string {
  const amount = Math.abs(difference);
  const digits = amount !== 0 && amount < 0.0995 ? 1 : 0;
  return `${sign(difference)}${(amount * 100).toFixed(digits)} points`;
}

export function sign(value: number): string {
  return value > 0 ? '+' : value < 0 ? '−' : '';
}

/** How likely something is by chance: 0.032 is 3.2%. */
export function chance(p: number): string {
  return p < 0.001 ? 'under 0.1%' : `${Number((p * 100).toPrecision(2))}%`;
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

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const [whole = '', ...fraction] = String(value).split('.');
  return [whole.replace(/\B(?=(\d{3})+$)/g, ','), ...fraction].join('.');
}

const UNITS: [unit: string, size: number][] = [
  ['B', 1e9],
  ['M', 1e6],
  ['K', 1e3],
];

/** 2,512 is 2.5K. */
export function compact(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  // The next larger unit, where rounding leads to it: 999,950 is 1M.
  const [unit, size] = UNITS.find((one) => Math.abs(value) >= one[1] * 0.99995) ?? ['', 1];
  return `${count(Number((value / size).toFixed(1)))}${unit}`;
}

/** US dollars; what is less than a cent keeps two digits of its own. */
export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const amount = Math.abs(value);
  const text = amount !== 0 && amount < 0.01 ? String(Number(amount.toPrecision(2))) : cents(amount);
  return `${value < 0 ? '-' : ''}$${text}`;
}

function cents(amount: number): string {
  const [whole, fraction] = amount.toFixed(2).split('.');
  return `${count(Number(whole))}.${fraction}`;
}

/** A score or measurement: whole numbers as they are, others with up to three digits. */
export function measure(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(3)));
}

export function plural(number: number, noun: string, many = `${noun}s`): string {
  return `${count(number)} ${number === 1 ? noun : many}`;
}

const STEPS: [unit: string, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

export function ago(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1_000;
  if (Math.abs(seconds) > 7 * 86_400) return exactTime(iso).slice(0, 10);
  for (const [unit, size] of STEPS) {
    const steps = Math.trunc(seconds / size);
    if (steps !== 0) return told(steps, unit);
  }
  return 'just now';
}

function told(steps: number, unit: string): string {
  if (unit === 'day' && Math.abs(steps) === 1) return steps < 0 ? 'yesterday' : 'tomorrow';
  const span = plural(Math.abs(steps), unit);
  return steps < 0 ? `${span} ago` : `in ${span}`;
}

/** The reader's own day and time: 2026-01-31 14:05:09. */
export function exactTime(at: string | number): string {
  const moment = new Date(at);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000)
    .toISOString()
    .slice(0, 19)
    .replace('T', ' ');
}

/** The first formatter of a page loads the language's tables, which holds up its start: made when needed. */
export function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
