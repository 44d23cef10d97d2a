// What all queries share; they themselves are in the files beside this one, by noun.
// Reading: queryOptions for useQuery. Changing: plain functions for useMutation.
// Keys begin with the noun, so that `invalidate(['scenarios'])` makes every list and detail of it fresh.
import { QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError } from './client';
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

/** A request that is sent twice is done once. */
export const idempotencyKey = () => ({ 'Idempotency-Key': crypto.randomUUID() });
