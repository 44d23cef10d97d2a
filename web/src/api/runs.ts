// Executions and runs; `updates.ts` keeps them fresh while events come in.
import { queryOptions } from '@tanstack/react-query';
import { client, dataOf, type Schemas } from './client';
import { idempotencyKey, PAGE, type Query } from './queries';

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
