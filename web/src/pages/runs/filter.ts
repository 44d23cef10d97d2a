// What the list of runs is narrowed to, as it stands in the address.
import type { Schemas } from '../../api/client';

export type Run = Schemas['RunSummary'];

export const OUTCOMES = ['pass', 'fail', 'error', 'unasserted'] as const;
export const FAULTS = ['agent', 'simulator', 'judge', 'evaluator', 'system'] as const;
export const VERDICTS = ['pass', 'fail', 'error', 'skipped'] as const;

export interface RunsFilter {
  since?: string;
  until?: string;
  label?: string;
  tag?: string;
  scenario?: string;
  connector?: string;
  outcome?: (typeof OUTCOMES)[number];
  fault?: (typeof FAULTS)[number];
  evaluator?: string;
  verdict?: (typeof VERDICTS)[number];
  metric?: string;
  min?: number;
  max?: number;
  said?: string;
  name?: string;
}

const TEXTS = [
  'since',
  'until',
  'label',
  'tag',
  'scenario',
  'connector',
  'evaluator',
  'metric',
  'said',
  'name',
] as const;

/** The parts of an address that mean something; the rest is left out. */
export function filterOf(search: Record<string, unknown>): RunsFilter {
  const filter: RunsFilter = {
    outcome: OUTCOMES.find((one) => one === search.outcome),
    fault: FAULTS.find((one) => one === search.fault),
    verdict: VERDICTS.find((one) => one === search.verdict),
    min: numberIn(search.min),
    max: numberIn(search.max),
  };
  for (const name of TEXTS) {
    const value = search[name];
    if (value !== undefined && value !== '') filter[name] = String(value);
  }
  return filter;
}

function numberIn(value: unknown): number | undefined {
  const number = Number(value);
  return value !== undefined && value !== '' && Number.isFinite(number) ? number : undefined;
}

/** The filter as the API takes it. Days are whole days where the reader is. */
export function queryOf(filter: RunsFilter) {
  const { since, until, label, tag, scenario, connector, min, max, name, verdict, ...same } = filter;
  return {
    ...same,
    since: since && new Date(`${since}T00:00`).toISOString(),
    until: until && dayAfter(until),
    label: label ? [label] : undefined,
    tag: tag ? [tag] : undefined,
    scenarioId: scenario,
    connectorId: connector,
    verdict: filter.evaluator ? verdict : undefined,
    metricMin: filter.metric ? min : undefined,
    metricMax: filter.metric ? max : undefined,
    text: name,
  };
}

function dayAfter(day: string): string {
  const moment = new Date(`${day}T00:00`);
  moment.setDate(moment.getDate() + 1);
  return moment.toISOString();
}
