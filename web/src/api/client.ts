// The one way to the server: a client typed by its OpenAPI document. Answers that are errors are thrown.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export type Problem = Schemas['Problem'];

/** An answer that refused or failed; status 0 means that the server could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Problem[] = [],
  ) {
    super(message);
    this.name = 'ApiError';
  }

  get unreachable(): boolean {
    return this.status === 0;
  }
}

export const client = createClient<paths>({ baseUrl: '' });

client.use({
  onError: () => new ApiError(0, 'unreachable', 'The server does not answer. Is it still running?'),
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What was asked for, or the error as an exception. */
export async function dataOf<T>(request: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (response.ok) return data as T;
  throw problemOf(error, response.status);
}

function problemOf(answer: unknown, status: number): ApiError {
  const body = (answer as Partial<Schemas['ErrorAnswer']> | undefined)?.error;
  if (!body?.message) return new ApiError(status, 'unknown', `The server answered with status ${status}.`);
  const details = Array.isArray(body.details) ? body.details : [];
  return new ApiError(status, body.code, body.message, details.map(withHint));
}

function withHint({ path, message, hint }: Problem): Problem {
  return { path, message: hint ? `${message}; ${hint}` : message };
}

/** The value of If-Match for an entity that was read with this version. */
export function versionTag(version: number): string {
  return `"v${version}"`;
}
