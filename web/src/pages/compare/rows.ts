// The rows of a comparison: their categories in order, and how a row is named in the address.
import type { Schemas } from '../../api/client';

export type Comparison = Schemas['ComparisonResult'];
export type Compared = Schemas['ComparedSubject'];
export type Category = Compared['category'];

export const CATEGORIES: { value: Category; label: string; meaning: string }[] = [
  {
    value: 'regressed',
    label: 'Regressed',
    meaning: 'Passes less often, and its flakiness does not explain it.',
  },
  { value: 'fixed', label: 'Fixed', meaning: 'Passes more often, beyond its flakiness.' },
  {
    value: 'flaky',
    label: 'Flaky',
    meaning: 'Repetitions disagree, or it moved no further than its earlier runs explain.',
  },
  {
    value: 'changed',
    label: 'Changed',
    meaning:
      'Another question: the scenario, its case, persona or evaluators differ. Shown and never compared.',
  },
  { value: 'unchanged', label: 'Unchanged', meaning: 'The same on both sides; counted, not listed.' },
  { value: 'new', label: 'New', meaning: 'Only the candidate has it.' },
  { value: 'gone', label: 'Gone', meaning: 'Only the base has it.' },
  { value: 'errored', label: 'Errored', meaning: 'One side came to errors instead of a result.' },
  { value: 'unasserted', label: 'Not checked', meaning: 'Nothing was checked on one side.' },
];

export function keyOfRow({ subject }: Compared): string {
  const parts = [
    subject.scenarioId ?? subject.scenarioName,
    subject.caseName,
    subject.personaId,
    subject.connectorId,
  ];
  return parts.map((part) => part ?? '').join('~');
}

export function rowsIn(comparison: Comparison, category: Category): Compared[] {
  return comparison.subjects.filter((one) => one.category === category);
}

/** The tab that matters most: the first that has rows. */
export function firstTab(comparison: Comparison): Category {
  return CATEGORIES.find(({ value }) => (comparison.counts[value] ?? 0) > 0)?.value ?? 'unchanged';
}
