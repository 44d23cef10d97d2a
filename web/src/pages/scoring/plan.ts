// A scoring plan as the form edits it: the settings of its YAML, with what the form does not know left alone.
import type { Criterion, EvaluatorUse } from '../scenarios/draft';

export type Plan = Record<string, unknown>;
type Fields = Record<string, unknown>;

const OWN_KEYS = ['type', 'name', 'config'];

/** Older plans spell it in another way; theirs is kept. */
function evaluatorsKey(plan: Plan): string {
  return 'evaluatorConfigs' in plan && !('evaluators' in plan) ? 'evaluatorConfigs' : 'evaluators';
}

/** The entries of a plan in the shape of the form: settings written beside the type belong to its config. */
export function evaluatorsOf(plan: Plan): EvaluatorUse[] {
  return list(plan[evaluatorsKey(plan)]).map((entry) => {
    const beside = Object.entries(entry).filter(([key]) => !OWN_KEYS.includes(key));
    return {
      type: String(entry.type ?? ''),
      name: typeof entry.name === 'string' ? entry.name : null,
      config: { ...Object.fromEntries(beside), ...(isFields(entry.config) ? entry.config : {}) },
      gate: null,
      reduce: null,
    };
  });
}

export function withEvaluators(plan: Plan, evaluators: EvaluatorUse[]): Plan {
  const entries = evaluators.map(({ type, name, config }) => filled({ type, name, config }));
  return { ...plan, [evaluatorsKey(plan)]: entries };
}

export function criteriaOf(plan: Plan): Criterion[] {
  return list(plan.criteria).map((one) => ({ ...one, name: String(one.name ?? '') }) as Criterion);
}

/** Limits that a renamed criterion had go with it; nothing else is lost by a change of name. */
export function withCriteria(plan: Plan, criteria: Criterion[]): Plan {
  const before = criteriaOf(plan);
  const sameRows = before.length === criteria.length;
  const thresholds = Object.entries(thresholdsOf(plan)).map(([name, least]) => {
    const row = sameRows ? before.findIndex((one) => one.name === name) : -1;
    return [criteria[row]?.name ?? name, least];
  });
  return filled({
    ...plan,
    criteria: criteria.map((one) => filled({ ...one })),
    thresholds: Object.fromEntries(thresholds.filter(([name]) => criteria.some((one) => one.name === name))),
  });
}

export function thresholdsOf(plan: Plan): Record<string, number> {
  return isFields(plan.thresholds) ? (plan.thresholds as Record<string, number>) : {};
}

export function withThreshold(plan: Plan, name: string, least: number | undefined): Plan {
  return filled({ ...plan, thresholds: filled({ ...thresholdsOf(plan), [name]: least }) });
}

export function fieldsOf(plan: Plan): [target: string, place: string][] {
  return isFields(plan.fields)
    ? Object.entries(plan.fields).map(([target, place]) => [target, String(place)])
    : [];
}

/** Without what says nothing: empty texts, lists and objects, and what is not set. */
export function filled(fields: Fields): Fields {
  const kept = Object.entries(fields).filter(([key, value]) => key === 'evaluators' || !isNothing(value));
  return Object.fromEntries(kept);
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}
