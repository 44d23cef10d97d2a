// What the pages of scoring read and change: datasets and plans of the project, scorings under way, results.
import { queryOptions } from '@tanstack/react-query';
import { client, dataOf, type Schemas } from './client';
import { idempotencyKey, type Query } from './queries';

export const resultsFilesQuery = queryOptions({
  queryKey: ['scoring', 'files'],
  queryFn: () => dataOf(client.GET('/api/scoring/files')),
});
export const scoredFileQuery = (query: Query<'/api/scoring/results'>) =>
  queryOptions({
    queryKey: ['scoring', 'results', query],
    queryFn: () => dataOf(client.GET('/api/scoring/results', { params: { query } })),
  });
export const scoringSourcesQuery = queryOptions({
  queryKey: ['scoring', 'sources'],
  queryFn: () => dataOf(client.GET('/api/scoring/sources')),
});
export const readPlan = (path: string) =>
  dataOf(client.GET('/api/scoring/plan', { params: { query: { path } } }));
export const checkPlan = (body: Schemas['PlanDraft']) =>
  dataOf(client.POST('/api/scoring/plan/check', { body }));
const UNDER_WAY_MS = 1_000;
export const scoringsQuery = queryOptions({
  queryKey: ['scoring', 'jobs'],
  refetchInterval: ({ state: { data } }: { state: { data?: Schemas['Scoring'][] } }) =>
    data?.some((one) => one.status === 'running') ? UNDER_WAY_MS : false,
  queryFn: () => dataOf(client.GET('/api/scoring/jobs')),
});
export const scoringQuery = (id: string) =>
  queryOptions({
    queryKey: ['scoring', 'jobs', id],
    refetchInterval: ({ state: { data } }: { state: { data?: Schemas['Scoring'] } }) =>
      data?.status === 'running' ? UNDER_WAY_MS : false,
    queryFn: () => dataOf(client.GET('/api/scoring/jobs/{id}', { params: { path: { id } } })),
  });
export const startScoring = (body: Schemas['StartScoring']) =>
  dataOf(client.POST('/api/scoring/jobs', { body, params: { header: idempotencyKey() } }));
export const cancelScoring = (id: string) =>
  dataOf(client.POST('/api/scoring/jobs/{id}/cancel', { params: { path: { id } } }));
export const deleteScoring = (id: string) =>
  dataOf(client.DELETE('/api/scoring/jobs/{id}', { params: { path: { id } } }));
