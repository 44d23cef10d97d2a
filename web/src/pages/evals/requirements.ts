// The kinds of requirements in words, and the fields that each of them has.
import type { Schemas } from '../../api/client';

export type Requirement = Schemas['Requirement'];
export type Kind =
  | 'passRate'
  | 'passHatK'
  | 'noRegression'
  | 'maxErrors'
  | 'maxFlaky'
  | 'minCoverage'
  | 'metric'
  | 'criterion';
type Name = keyof Requirement;

interface Field {
  label: string;
  description: string;
  /** An amount is a whole number, or a share such as 2% */
  holds: 'share' | 'number' | 'amount' | 'text' | 'truth';
}

export const FIELDS: Record<Name, Field> = {
  passRate: { label: 'At least', description: '0.9 means 90% of scored runs', holds: 'share' },
  passHatK: { label: 'At least', description: '0.9 means 90% of subjects', holds: 'share' },
  k: { label: 'Times in a row', description: 'How often each must pass', holds: 'number' },
  noRegression: { label: 'Baseline', description: 'Its name, such as main', holds: 'text' },
  minEffect: { label: 'Smallest drop', description: 'That counts; empty: any', holds: 'share' },
  allowGone: { label: 'May be missing', description: 'true if subjects may', holds: 'truth' },
  alpha: { label: 'Chance of error', description: 'Usually 0.05', holds: 'number' },
  maxErrors: { label: 'At most', description: 'Runs, such as 3 or 2%', holds: 'amount' },
  maxFlaky: { label: 'At most', description: 'Subjects, such as 3 or 2%', holds: 'amount' },
  minCoverage: { label: 'At least', description: '0.9 means 90% of runs', holds: 'share' },
  metric: { label: 'Metric', description: 'Or latencyMs, totalTokens, turns', holds: 'text' },
  percentile: { label: 'Percentile', description: 'Such as 95; empty: the mean', holds: 'number' },
  criterion: { label: 'Criterion', description: 'By its name', holds: 'text' },
  min: { label: 'At least', description: 'The least value', holds: 'number' },
  max: { label: 'At most', description: 'The greatest value', holds: 'number' },
  scenario: { label: 'Only scenario', description: 'Empty: all', holds: 'text' },
  tag: { label: 'Only tag', description: 'Empty: all', holds: 'text' },
  confidence: { label: 'Confidence', description: 'Holds the bound; 0.95', holds: 'number' },
};

const PART: Name[] = ['scenario', 'tag'];

export const KINDS: Record<Kind, { label: string; fields: Name[] }> = {
  passRate: { label: 'Pass rate', fields: ['passRate', ...PART, 'confidence'] },
  passHatK: { label: 'Passes several times in a row', fields: ['passHatK', 'k', ...PART, 'confidence'] },
  noRegression: {
    label: 'No regression',
    fields: ['noRegression', 'minEffect', 'allowGone', 'alpha', ...PART, 'confidence'],
  },
  maxErrors: { label: 'Errors', fields: ['maxErrors', ...PART] },
  maxFlaky: { label: 'Flaky subjects', fields: ['maxFlaky', ...PART] },
  minCoverage: { label: 'Coverage', fields: ['minCoverage', 'criterion', ...PART] },
  metric: { label: 'A metric', fields: ['metric', 'min', 'max', 'percentile', ...PART, 'confidence'] },
  criterion: { label: 'A criterion', fields: ['criterion', 'min', 'max', ...PART, 'confidence'] },
};

const BEGINNINGS: Record<Kind, Requirement> = {
  passRate: { passRate: 0.9 },
  passHatK: { passHatK: 0.9, k: 3 },
  noRegression: { noRegression: 'main' },
  maxErrors: { maxErrors: 0 },
  maxFlaky: { maxFlaky: 0 },
  minCoverage: { minCoverage: 0.9 },
  metric: { metric: 'latencyMs' },
  criterion: { criterion: '' },
};

// Coverage may name a criterion, so it is looked for first.
const ORDER: Kind[] = [
  'passRate',
  'passHatK',
  'noRegression',
  'maxErrors',
  'maxFlaky',
  'minCoverage',
  'metric',
  'criterion',
];

export function kindOf(requirement: Requirement): Kind {
  return ORDER.find((kind) => requirement[kind] != null) ?? 'criterion';
}

/** A requirement of another kind, of the same scenarios. */
export function begun(kind: Kind, before: Requirement = {}): Requirement {
  const { scenario, tag } = before;
  return { ...BEGINNINGS[kind], ...(scenario && { scenario }), ...(tag && { tag }) };
}

/** The requirement with what was typed into a field; an empty one is left out unless it says of which kind it is. */
export function withField(requirement: Requirement, name: Name, text: string): Requirement {
  const { [name]: _before, ...others } = requirement;
  const value = typedValue(FIELDS[name].holds, text);
  if (value === undefined) return name === kindOf(requirement) ? { ...others, [name]: '' } : others;
  return { ...others, [name]: value };
}

export function typedValue(holds: Field['holds'], text: string): number | string | boolean | undefined {
  if (text.trim() === '') return undefined;
  if (holds === 'truth') return text === 'true' ? true : text === 'false' ? false : text;
  const number = Number(text);
  // What is not a number goes to the server as it is, which says what it must be.
  return holds === 'text' || Number.isNaN(number) ? text : number;
}
