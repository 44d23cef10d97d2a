// What pages read and change. Reading: queryOptions for useQuery. Changing: plain functions for useMutation.
// Keys begin with the noun, so that `invalidate(['scenarios'])` makes every list and detail of it fresh.
import { QueryCache, QueryClient, queryOptions } from '@tanstack/react-query';
import { ApiError, client, dataOf, type Schemas, versionTag } from './client';
import type { paths } from './schema';

export type Query<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;

export const PAGE = 500;
const AWAY_MS = 2_000;

export const queryClient = new QueryClient({
  // Whoever is shut out is asked for the token again.
  queryCache: new QueryCache({
    onError: (error, query) => {
      if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== 'session') {
        void queryClient.invalidateQueries({ queryKey: ['session'] });
      }
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      networkMode: 'always',
      // What could not be read because the server was away is read once it is back.
      refetchInterval: ({ state: { error } }) =>
        error instanceof ApiError && error.unreachable ? AWAY_MS : false,
      retry: (failures, error) => !(error instanceof ApiError && error.status > 0) && failures < 2,
    },
    mutations: { networkMode: 'always' },
  },
});

/** Make everything under these keys fresh again. */
export function invalidate(...keys: unknown[][]): Promise<unknown> {
  return Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })));
}

/** All pages of a list, one after the other. */
export async function allPages<T>(
  page: (cursor?: string) => Promise<{ items: T[]; cursor: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const next = await page(cursor);
    items.push(...next.items);
    cursor = next.cursor ?? undefined;
  } while (cursor);
  return items;
}

const idempotencyKey = () => ({ 'Idempotency-Key': crypto.randomUUID() });

// The server

export const statusQuery = queryOptions({
  queryKey: ['status'],
  queryFn: () => dataOf(client.GET('/api/status')),
});
export const refusedQuery = queryOptions({
  queryKey: ['refused'],
  queryFn: () => dataOf(client.GET('/api/definitions/refused')),
});
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => dataOf(client.GET('/api/session')),
});
export const logIn = (token: string) => dataOf(client.POST('/api/session', { body: { token } }));
export const pluginsQuery = queryOptions({
  queryKey: ['plugins'],
  queryFn: () => dataOf(client.GET('/api/plugins')),
});
export const providersQuery = queryOptions({
  queryKey: ['providers'],
  queryFn: () => dataOf(client.GET('/api/llm/providers')),
});
export const evaluatorTypesQuery = queryOptions({
  queryKey: ['evaluator-types'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: () => dataOf(client.GET('/api/evaluator-types')),
});
type EvaluatorUses = Schemas['EvaluatorUses']['evaluators'];
export const gatesQuery = (evaluators: EvaluatorUses) =>
  queryOptions({
    queryKey: ['gates', evaluators],
    staleTime: Number.POSITIVE_INFINITY,
    // What is being typed keeps its last answer until the next one is in.
    placeholderData: (before: Schemas['Gates'] | undefined) => before,
    queryFn: () => dataOf(client.POST('/api/evaluator-types/gates', { body: { evaluators } })),
  });
export const connectorTypesQuery = queryOptions({
  queryKey: ['connector-types'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: () => dataOf(client.GET('/api/connectors/types')),
});

// Scenarios

export const scenariosQuery = queryOptions({
  queryKey: ['scenarios', 'all'],
  queryFn: () =>
    allPages((cursor) =>
      dataOf(client.GET('/api/scenarios', { params: { query: { cursor, limit: PAGE } } })),
    ),
});
export const scenarioQuery = (id: string) =>
  queryOptions({
    queryKey: ['scenarios', id],
    queryFn: () => dataOf(client.GET('/api/scenarios/{id}', { params: { path: { id } } })),
  });
export const scenarioYamlQuery = (id: string) =>
  queryOptions({
    queryKey: ['scenarios', id, 'yaml'],
    queryFn: () => dataOf(client.GET('/api/scenarios/{id}/yaml', { params: { path: { id } } })),
  });
/** A scenario that says what was said in a run; nothing is stored. */
export const draftedScenarioQuery = (runId: string) =>
  queryOptions({
    queryKey: ['scenarios', 'drafted', runId],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => dataOf(client.POST('/api/runs/{id}/scenario', { params: { path: { id: runId } } })),
  });
/** The cases in the text of a CSV or JSONL file; nothing is stored. */
export const readCases = (name: string, text: string) =>
  dataOf(client.POST('/api/cases', { body: { name, text } }));
export const createScenario = (body: Schemas['Scenario']) =>
  dataOf(client.POST('/api/scenarios', { body, params: { header: idempotencyKey() } }));
export const updateScenario = (id: string, version: number, body: Schemas['Scenario']) =>
  dataOf(
    client.PUT('/api/scenarios/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteScenario = (id: string) =>
  dataOf(client.DELETE('/api/scenarios/{id}', { params: { path: { id } } }));

// Personas

export const personasQuery = queryOptions({
  queryKey: ['personas', 'all'],
  queryFn: () =>
    allPages((cursor) => dataOf(client.GET('/api/personas', { params: { query: { cursor, limit: PAGE } } }))),
});
export const personaQuery = (id: string) =>
  queryOptions({
    queryKey: ['personas', id],
    queryFn: () => dataOf(client.GET('/api/personas/{id}', { params: { path: { id } } })),
  });
export const createPersona = (body: Schemas['Persona']) =>
  dataOf(client.POST('/api/personas', { body, params: { header: idempotencyKey() } }));
export const updatePersona = (id: string, version: number, body: Schemas['Persona']) =>
  dataOf(
    client.PUT('/api/personas/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deletePersona = (id: string) =>
  dataOf(client.DELETE('/api/personas/{id}', { params: { path: { id } } }));

// Connectors

export const connectorsQuery = queryOptions({
  queryKey: ['connectors', 'all'],
  queryFn: () =>
    allPages((cursor) =>
      dataOf(client.GET('/api/connectors', { params: { query: { cursor, limit: PAGE } } })),
    ),
});
export const connectorQuery = (id: string) =>
  queryOptions({
    queryKey: ['connectors', id],
    queryFn: () => dataOf(client.GET('/api/connectors/{id}', { params: { path: { id } } })),
  });
export const createConnector = (body: Schemas['Connector']) =>
  dataOf(client.POST('/api/connectors', { body, params: { header: idempotencyKey() } }));
export const updateConnector = (id: string, version: number, body: Schemas['Connector']) =>
  dataOf(
    client.PUT('/api/connectors/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteConnector = (id: string) =>
  dataOf(client.DELETE('/api/connectors/{id}', { params: { path: { id } } }));
export const testConnector = (id: string) =>
  dataOf(client.POST('/api/connectors/{id}/test', { params: { path: { id } } }));

// Evals

export const evalsQuery = queryOptions({
  queryKey: ['evals', 'all'],
  queryFn: () =>
    allPages((cursor) => dataOf(client.GET('/api/evals', { params: { query: { cursor, limit: PAGE } } }))),
});
export const evalQuery = (id: string) =>
  queryOptions({
    queryKey: ['evals', id],
    queryFn: () => dataOf(client.GET('/api/evals/{id}', { params: { path: { id } } })),
  });
export const createEval = (body: Schemas['Eval']) =>
  dataOf(client.POST('/api/evals', { body, params: { header: idempotencyKey() } }));
export const updateEval = (id: string, version: number, body: Schemas['Eval']) =>
  dataOf(
    client.PUT('/api/evals/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteEval = (id: string) =>
  dataOf(client.DELETE('/api/evals/{id}', { params: { path: { id } } }));

// Monitors

const MINUTE = 60_000;
export const monitorsQuery = queryOptions({
  queryKey: ['monitors', 'all'],
  queryFn: () =>
    allPages((cursor) => dataOf(client.GET('/api/monitors', { params: { query: { cursor, limit: PAGE } } }))),
});
export const readMonitor = (id: string) =>
  dataOf(client.GET('/api/monitors/{id}', { params: { path: { id } } }));
/** As it is read: the generated shape says less of the pairs in it. */
export type StoredMonitor = Awaited<ReturnType<typeof readMonitor>>;
export const monitorQuery = (id: string) =>
  queryOptions({
    queryKey: ['monitors', id],
    queryFn: () => readMonitor(id),
  });
export const monitorSeriesQuery = (id: string, query: Query<'/api/monitors/{id}/series'> = {}) =>
  queryOptions({
    queryKey: ['monitors', id, 'series', query],
    refetchInterval: MINUTE,
    queryFn: () => dataOf(client.GET('/api/monitors/{id}/series', { params: { path: { id }, query } })),
  });
export const alarmsQuery = (id: string) =>
  queryOptions({
    queryKey: ['monitors', id, 'alarms'],
    refetchInterval: MINUTE,
    queryFn: () => dataOf(client.GET('/api/monitors/{id}/alarms', { params: { path: { id } } })),
  });
export const acknowledgeAlarm = (id: string) =>
  dataOf(client.POST('/api/alarms/{id}/acknowledge', { params: { path: { id } } }));
export const restartMonitor = (id: string) =>
  dataOf(client.POST('/api/monitors/{id}/restart', { params: { path: { id } } }));
export const createMonitor = (body: Schemas['Monitor']) =>
  dataOf(client.POST('/api/monitors', { body, params: { header: idempotencyKey() } }));
export const updateMonitor = (id: string, version: number, body: Schemas['Monitor']) =>
  dataOf(
    client.PUT('/api/monitors/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteMonitor = (id: string) =>
  dataOf(client.DELETE('/api/monitors/{id}', { params: { path: { id } } }));

// Executions and runs: `updates.ts` keeps these fresh while events come in.

export const executionsQuery = (query: Query<'/api/executions'> = {}) =>
  queryOptions({
    queryKey: ['executions', 'list', query],
    queryFn: () => dataOf(client.GET('/api/executions', { params: { query } })),
  });
export const executionQuery = (id: string) =>
  queryOptions({
    queryKey: ['executions', id],
    // An answer that was under way when its page was left may be older than the events heard since.
    refetchOnMount: 'always',
    queryFn: () => dataOf(client.GET('/api/executions/{id}', { params: { path: { id } } })),
  });
export const startExecution = (body: Schemas['StartExecution']) =>
  dataOf(client.POST('/api/executions', { body, params: { header: idempotencyKey() } }));
export const cancelExecution = (id: string) =>
  dataOf(client.POST('/api/executions/{id}/cancel', { params: { path: { id } } }));
export const retryExecution = (id: string) =>
  dataOf(client.POST('/api/executions/{id}/retry', { params: { path: { id } } }));
export const deleteExecution = (id: string) =>
  dataOf(client.DELETE('/api/executions/{id}', { params: { path: { id } } }));

export const runsQuery = (query: Query<'/api/runs'> = {}) =>
  queryOptions({
    queryKey: ['runs', 'list', query],
    queryFn: () => dataOf(client.GET('/api/runs', { params: { query } })),
  });
export const runQuery = (id: string, attempt?: number) =>
  queryOptions({
    queryKey: ['runs', id, attempt ?? 'last'],
    queryFn: () => dataOf(client.GET('/api/runs/{id}', { params: { path: { id }, query: { attempt } } })),
  });
export const runDefinitionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['runs', id, 'definitions'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => dataOf(client.GET('/api/runs/{id}/definitions', { params: { path: { id } } })),
  });
export const startRun = (body: Schemas['StartRun']) =>
  dataOf(client.POST('/api/runs', { body, params: { header: idempotencyKey() } }));
export const retryRun = (id: string) =>
  dataOf(client.POST('/api/runs/{id}/retry', { params: { path: { id } } }));
export const cancelRun = (id: string) =>
  dataOf(client.POST('/api/runs/{id}/cancel', { params: { path: { id } } }));

/** What the scenario's evaluators of today say about a run; nothing of it is kept. */
export const rescoreRun = (id: string) =>
  dataOf(client.POST('/api/runs/{id}/rescore', { params: { path: { id } } }));
export const feedbackQuery = (runId: string) =>
  queryOptions({
    queryKey: ['feedback', runId],
    queryFn: () => dataOf(client.GET('/api/feedback', { params: { query: { runId, limit: PAGE } } })),
  });
export const giveFeedback = (body: Schemas['NewFeedback']) =>
  dataOf(client.POST('/api/feedback', { body, params: { header: idempotencyKey() } }));

// Figures

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
