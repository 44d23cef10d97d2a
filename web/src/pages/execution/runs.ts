// The runs of an execution: read once, then kept up to date by events; counted, filtered and told apart.
import { queryOptions } from '@tanstack/react-query';
import { answered, client, type Schemas } from '../../api/client';
import { feed, type LiveEvent } from '../../api/events';
import { patchedAll } from '../../api/live';
import { everything, PAGE } from '../../api/queries';
import { type Standing, standingOf } from '../../parts/outcome';
import type { Shown } from '../../router';

export type Run = Schemas['RunSummary'];
export type Counts = Schemas['Counts'];

export const executionRunsQuery = (executionId: string) =>
  queryOptions({
    queryKey: ['runs', 'execution', executionId],
    staleTime: 60_000,
    queryFn: async () => {
      // Events that come while the pages are read may be about runs on pages that were already read.
      const meanwhile: LiveEvent[] = [];
      const stop = feed.listen((events) => meanwhile.push(...events));
      try {
        const found = await everything((cursor) =>
          answered(client.GET('/api/runs', { params: { query: { executionId, cursor, limit: PAGE } } })),
        );
        return patchedAll(found.reverse(), meanwhile);
      } finally {
        stop();
      }
    },
  });

/** What makes two runs repetitions of the same thing. */
export function sameThing(run: Run): string {
  return [run.scenarioId ?? run.scenarioName, run.caseName, run.personaId, run.connectorId].join(' ');
}

/** Things that passed in one repetition and did not in another. */
export function flakyThings(runs: Run[]): Set<string> {
  const seen = new Map<string, Set<string>>();
  for (const run of runs) {
    if (!run.result) continue;
    const key = sameThing(run);
    const outcomes = seen.get(key) ?? new Set<string>();
    outcomes.add(run.result.outcome);
    seen.set(key, outcomes);
  }
  return new Set(
    [...seen].filter(([, outcomes]) => outcomes.has('pass') && outcomes.size > 1).map(([key]) => key),
  );
}

export function countsOf(runs: Run[]): Counts {
  const counts: Counts = {
    total: runs.length,
    queued: 0,
    running: 0,
    passed: 0,
    failed: 0,
    errored: 0,
    cancelled: 0,
    unasserted: 0,
  };
  for (const run of runs) {
    const standing = standingOf(run);
    for (const field of FIELDS[standing] ?? []) counts[field] += 1;
  }
  return counts;
}

const FIELDS: Partial<Record<Standing, (keyof Counts)[]>> = {
  queued: ['queued'],
  running: ['running'],
  cancelled: ['cancelled'],
  pass: ['passed'],
  unasserted: ['passed', 'unasserted'],
  fail: ['failed'],
  error: ['errored'],
};

export interface Wanted {
  show?: Shown;
  text?: string;
  scenario?: string;
}

export function chosen(runs: Run[], wanted: Wanted, flaky: Set<string>): Run[] {
  const words = (wanted.text ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    if (wanted.scenario && run.scenarioId !== wanted.scenario) return false;
    if (!isShown(run, wanted.show ?? 'all', flaky)) return false;
    const text = words.length > 0 ? searched(run) : '';
    return words.every((word) => text.includes(word));
  });
}

function isShown(run: Run, show: Shown, flaky: Set<string>): boolean {
  if (show === 'all') return true;
  if (show === 'flaky') return flaky.has(sameThing(run));
  if (show === 'waiting') return run.status === 'queued' || run.status === 'running';
  return run.result?.outcome === show && run.status !== 'queued' && run.status !== 'running';
}

function searched(run: Run): string {
  const parts = [
    run.scenarioName,
    run.caseName,
    run.personaName,
    run.connectorName,
    run.result?.reason,
    run.error,
  ];
  return parts.filter(Boolean).join(' ').toLowerCase();
}
