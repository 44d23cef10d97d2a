// Monitors, their alarms, and the conversations of production.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { client, dataOf, type Schemas, versionTag } from './client';
import { allPages, idempotencyKey, PAGE, type Query } from './queries';

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
export const conversationsQuery = (text: string) =>
  infiniteQueryOptions({
    queryKey: ['conversations', 'list', text],
    refetchInterval: MINUTE,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }) =>
      dataOf(
        client.GET('/api/conversations', {
          params: { query: { text: text || undefined, cursor, limit: 50 } },
        }),
      ),
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
export const conversationQuery = (id: string) =>
  queryOptions({
    queryKey: ['conversations', id],
    queryFn: () => dataOf(client.GET('/api/conversations/{id}', { params: { path: { id } } })),
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
