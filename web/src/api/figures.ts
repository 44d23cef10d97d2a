// Figures in the server's own counts: of Home, comparisons, histories and executions.
import { queryOptions } from '@tanstack/react-query';
import { client, dataOf, type Schemas } from './client';
import { allPages, PAGE, type Query } from './queries';
import type { paths } from './schema';

/** A card per eval; `updates.ts` keeps it fresh. */
export const homeQuery = queryOptions({
  queryKey: ['stats', 'home'],
  queryFn: () => dataOf(client.GET('/api/home')),
});
export const searchQuery = (text: string) =>
  queryOptions({
    queryKey: ['search', text],
    enabled: text.trim() !== '',
    placeholderData: (before: Schemas['SearchHit'][] | undefined) => before,
    queryFn: () => dataOf(client.GET('/api/search', { params: { query: { text } } })),
  });
export const compareQuery = (query: Query<'/api/compare'>) =>
  queryOptions({
    queryKey: ['compare', query],
    queryFn: () => dataOf(client.GET('/api/compare', { params: { query } })),
  });
export const comparedRunsQuery = (query: Query<'/api/compare/runs'>) =>
  queryOptions({
    queryKey: ['compare', 'runs', query],
    queryFn: () => dataOf(client.GET('/api/compare/runs', { params: { query } })),
  });
export const baselinesQuery = (evalId: string) =>
  queryOptions({
    queryKey: ['stats', 'baselines', evalId],
    queryFn: () => dataOf(client.GET('/api/baselines', { params: { query: { evalId } } })),
  });
export const setBaseline = (body: Schemas['SetBaseline']) => dataOf(client.PUT('/api/baselines', { body }));
export const removeBaseline = (evalId: string, name: string) =>
  dataOf(client.DELETE('/api/baselines', { params: { query: { evalId, name } } }));
export const scenarioHistoryQuery = (id: string) =>
  queryOptions({
    queryKey: ['stats', 'scenario-history', id],
    queryFn: () => dataOf(client.GET('/api/stats/scenarios/{id}', { params: { path: { id } } })),
  });
export const evaluatorHistoryQuery = (type: string) =>
  queryOptions({
    queryKey: ['evaluator-history', type],
    queryFn: () => dataOf(client.GET('/api/stats/evaluators/{type}', { params: { path: { type } } })),
  });

export const executionStatsQuery = (query: Query<'/api/stats/executions'> = {}) =>
  queryOptions({
    queryKey: ['stats', 'executions', query],
    queryFn: () => dataOf(client.GET('/api/stats/executions', { params: { query } })),
  });
/** What an execution has come to so far, as the command line prints it; `updates.ts` keeps it fresh. */
export const executionSummaryQuery = (id: string) =>
  queryOptions({
    queryKey: ['stats', 'execution', id],
    refetchOnMount: 'always',
    queryFn: () => dataOf(client.GET('/api/stats/executions/{id}', { params: { path: { id } } })),
  });
type Over = Pick<Schemas['Execution'], 'id' | 'updatedAt'>;
/** Whether an execution that is over reached what is required. */
export const conclusionQuery = ({ id, updatedAt }: Over) =>
  queryOptions({
    queryKey: ['conclusions', id, updatedAt],
    queryFn: () => dataOf(client.GET('/api/executions/{id}/conclusion', { params: { path: { id } } })),
  });
export const distributionsQuery = ({ id, updatedAt }: Over) =>
  queryOptions({
    queryKey: ['distributions', id, updatedAt],
    queryFn: () =>
      dataOf(client.GET('/api/stats/executions/{id}/distributions', { params: { path: { id } } })),
  });
/** What was found in runs: by the id of a run, then by evaluator. */
export type Findings = Map<string, Map<string, Schemas['FindingCell'] | null>>;
/** What some evaluators found in each run of an execution. */
export const findingsQuery = (id: string, evaluator: string[]) =>
  queryOptions({
    queryKey: ['stats', 'findings', id, evaluator],
    enabled: evaluator.length > 0,
    // A column more or less leaves the others as they are.
    placeholderData: (before: Findings | undefined) => before,
    queryFn: async (): Promise<Findings> => {
      const rows = await allPages((cursor) =>
        dataOf(
          client.GET('/api/stats/executions/{id}/findings', {
            params: { path: { id }, query: { evaluator, cursor, limit: PAGE } },
          }),
        ),
      );
      return new Map(
        rows.map(({ runId, findings }) => [
          runId,
          new Map(findings.map((finding, place) => [evaluator[place] ?? '', finding])),
        ]),
      );
    },
  });
export const evaluatorStatsQuery = (query: Query<'/api/stats/evaluators'>) =>
  queryOptions({
    queryKey: ['stats', 'evaluators', query],
    queryFn: () => dataOf(client.GET('/api/stats/evaluators', { params: { query } })),
  });
export const flakiestQuery = (query: Query<'/api/stats/flaky'> = {}) =>
  queryOptions({
    queryKey: ['stats', 'flaky', query],
    queryFn: () => dataOf(client.GET('/api/stats/flaky', { params: { query } })),
  });
type GroupedBy = paths['/api/stats/{by}']['get']['parameters']['path']['by'];
export const statsQuery = (by: GroupedBy, query: Query<'/api/stats/{by}'> = {}) =>
  queryOptions({
    queryKey: ['stats', by, query],
    queryFn: () => dataOf(client.GET('/api/stats/{by}', { params: { path: { by }, query } })),
  });
export const matrixQuery = (evalId: string, limit = 10) =>
  queryOptions({
    queryKey: ['stats', 'matrix', evalId, limit],
    queryFn: () => dataOf(client.GET('/api/stats/matrix', { params: { query: { evalId, limit } } })),
  });
