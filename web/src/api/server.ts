// The server itself: who may ask, what it has loaded, which models it knows.
import { queryOptions } from '@tanstack/react-query';
import { client, dataOf } from './client';

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
