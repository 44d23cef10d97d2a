// The runs of an execution: read once, then kept up to date by events; filtered.
import { queryOptions } from '@tanstack/react-query';
import { client, dataOf, type Schemas } from '../../api/client';
import { feed, type LiveEvent } from '../../api/events';
import { allPages, PAGE } from '../../api/queries';
import { patchedAll } from '../../api/updates';
import type { Grouping, RunChoice } from '../../router';

export type Run = Schemas['RunSummary'];
export type Summary = Schemas['ExecutionSummary'];

export const executionRunsQuery = (executionId: string) =>
  queryOptions({
    queryKey: ['runs', 'execution', executionId],
    staleTime: 60_000,
    queryFn: async () => {
      // Events that come while the pages are read may be about runs on pages that were already read.
      const meanwhile: LiveEvent[] = [];
      const stop = feed.listen((events) => meanwhile.push(...events));
      try {
        const runs = await allPages((cursor) =>
          dataOf(client.GET('/api/runs', { params: { query: { executionId, cursor, limit: PAGE } } })),
        );
        return patchedAll(runs.reverse(), meanwhile);
      } finally {
        stop();
      }
    },
  });

/** What a run has in common with its repetitions; the server names a flaky subject by the same fields. */
export function subjectKey(
  run: Pick<Run, 'scenarioId' | 'scenarioName' | 'caseName' | 'personaId' | 'connectorId'>,
): string {
  return [run.scenarioId ?? run.scenarioName, run.caseName, run.personaId, run.connectorId].join(' ');
}

export interface RunFilter {
  show?: RunChoice;
  text?: string;
  scenario?: string;
  sort?: string;
  group?: Grouping;
  columns?: string[];
}

export function filteredRuns(runs: Run[], filter: RunFilter, flaky: Set<string>): Run[] {
  const words = (filter.text ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    if (filter.scenario && run.scenarioId !== filter.scenario) return false;
    if (!isIncluded(run, filter.show ?? 'all', flaky)) return false;
    const text = words.length > 0 ? searchText(run) : '';
    return words.every((word) => text.includes(word));
  });
}

function isIncluded(run: Run, show: RunChoice, flaky: Set<string>): boolean {
  if (show === 'all') return true;
  if (show === 'flaky') return flaky.has(subjectKey(run));
  if (show === 'waiting') return run.status === 'queued' || run.status === 'running';
  return run.result?.outcome === show && run.status !== 'queued' && run.status !== 'running';
}

function searchText(run: Run): string {
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
