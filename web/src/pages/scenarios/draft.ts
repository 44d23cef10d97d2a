// A scenario while it is edited, and what can be read off it.
import type { Problem, Schemas } from '../../api/client';
import type { updateScenario } from '../../api/definitions';
import type { Editor, StoredFields } from '../../editing/useEditor';

export type StoredScenario = Schemas['StoredScenario'];
export type Draft = Omit<StoredScenario, keyof StoredFields>;
export type ScenarioEditing = Editor<Draft>;
/** The part of an editor that a section needs: scenarios, monitors and plans have it in common. */
export type Editing<Key extends 'evaluators' | 'criteria'> = {
  draft: Pick<Draft, Key>;
  change: (patch: Pick<Draft, Key>) => void;
  problems: Problem[];
};
export type Message = Schemas['Message'];
export type EvaluatorUse = Schemas['EvaluatorUse'];
export type Criterion = Schemas['EvaluationCriteria'];
export type Case = Schemas['Case'];

export const BLANK: Draft = {
  name: '',
  instructions: null,
  messages: [],
  script: [],
  maxMessages: null,
  successCriteria: null,
  failureCriteria: null,
  failureCriteriaMode: 'on_max_messages',
  evaluators: [],
  criteria: [],
  personaIds: [],
  cases: [],
  groundTruth: null,
  context: {},
  stopOnFailure: true,
  tags: [],
};

type Read = Awaited<ReturnType<typeof updateScenario>>;

/** The client's types read a pair as any list of numbers; the server sends pairs. */
export const asStored = (scenario: Read): StoredScenario => scenario as StoredScenario;

// As the server reads them: what begins with a letter or digit, and has no backslash before it.
const PLACEHOLDER = /(?<!\\)\{\{\s*([\p{L}\p{N}_][^{}]*?)\s*\}\}/gu;

/** The names of all {{placeholders}} that a case fills in, in the order they come. */
export function placeholders(draft: Draft): string[] {
  const { instructions, script, messages, successCriteria, failureCriteria } = draft;
  const { evaluators, criteria, groundTruth, context } = draft;
  const configs = evaluators.map((entry) => entry.config);
  const described = criteria.map((criterion) => criterion.description);
  const filled = [instructions, script, messages, successCriteria, failureCriteria, configs, described];
  const names = [...filled, groundTruth, context]
    .flatMap(textsIn)
    .flatMap((text) => [...text.matchAll(PLACEHOLDER)].map((match) => match[1] as string));
  return [...new Set(names)];
}

/** Every text in some data. Templates are left out: most of their names are their own. */
function textsIn(data: unknown): string[] {
  if (typeof data === 'string') return [data];
  if (Array.isArray(data)) return data.flatMap(textsIn);
  if (!data || typeof data !== 'object') return [];
  return Object.entries(data).flatMap(([key, value]) =>
    /template$/i.test(key) ? [] : [key, ...textsIn(value)],
  );
}

/** Whether a message is more than a role and text: then it is edited whole, as JSON. */
export function isPlain(message: Message): boolean {
  const { role: _role, content, ...more } = message;
  const text = content === undefined || content === null || typeof content === 'string';
  return text && Object.values(more).every((value) => value === null || value === undefined);
}
