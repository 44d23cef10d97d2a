// Keeps what was read fresh as events come in. Runs of a list are patched in place from the event itself:
// asking again for thousands of rows on every event would be too much.
import type { QueryClient } from '@tanstack/react-query';
import type { Schemas } from './client';
import type { EventFeed, LiveEvent } from './events';

type RunSummary = Schemas['RunSummary'];
type Verdict = Schemas['Verdict'];

const OVER = new Set(['execution.completed', 'execution.cancelled']);
const EXECUTION_MS = 300;
const FIGURES_MS = 2_000;

/** What a run looks like after an event about it. */
export function patched(run: RunSummary, event: LiveEvent): RunSummary {
  const body = event.body as Partial<Verdict> & {
    attempt?: number;
    turn?: number;
    latencyMs?: number | null;
    totalTokens?: number | null;
  };
  const updatedAt = event.at;
  // What was read may be newer than an event that was still under way.
  if (updatedAt < run.updatedAt) return run;
  switch (event.kind) {
    case 'run.queued':
      return {
        ...run,
        updatedAt,
        status: 'queued',
        attempt: body.attempt ?? run.attempt,
        turnCount: 0,
        result: null,
        error: null,
        startedAt: null,
        completedAt: null,
        latencyMs: null,
        totalTokens: null,
      };
    case 'run.started':
      return {
        ...run,
        updatedAt,
        status: 'running',
        startedAt: updatedAt,
        attempt: body.attempt ?? run.attempt,
      };
    case 'run.turn':
      return { ...run, updatedAt, turnCount: Math.max(run.turnCount, body.turn ?? 0) };
    case 'run.cancelled':
      return { ...run, updatedAt, status: 'cancelled', completedAt: updatedAt };
    case 'run.finished':
      return {
        ...run,
        updatedAt,
        status: body.outcome === 'error' ? 'error' : 'completed',
        completedAt: updatedAt,
        latencyMs: body.latencyMs ?? null,
        totalTokens: body.totalTokens ?? null,
        result: verdictOf(body),
      };
    default:
      return run;
  }
}

function verdictOf(body: Partial<Verdict>): Verdict {
  return {
    success: body.outcome === 'pass',
    outcome: body.outcome ?? 'error',
    fault: body.fault ?? null,
    score: body.score ?? null,
    overallScore: null,
    reason: body.reason ?? '',
  };
}

/** All runs after a batch of events; the same list if none of them is concerned. */
export function patchedAll(runs: RunSummary[], events: LiveEvent[]): RunSummary[] {
  const byRun = new Map<string, LiveEvent[]>();
  for (const event of events) {
    if (!event.runId) continue;
    const known = byRun.get(event.runId);
    if (known) known.push(event);
    else byRun.set(event.runId, [event]);
  }
  const deleted = new Set(events.filter((event) => event.kind === 'run.deleted').map((event) => event.runId));
  if (!runs.some((run) => byRun.has(run.id))) return runs;
  return runs
    .filter((run) => !deleted.has(run.id))
    .map((run) => byRun.get(run.id)?.reduce(patched, run) ?? run);
}

/**
 * Does some work soon after it is requested: at most once per interval, and never twice at the same time, so that
 * a server that answers slowly is not asked again before it has answered.
 */
export function throttled(work: () => Promise<unknown>, intervalMs: number): () => void {
  let requested = false;
  let waiting = false;
  const start = () => {
    waiting = true;
    setTimeout(async () => {
      requested = false;
      await work().catch(() => undefined);
      waiting = false;
      if (requested) start();
    }, intervalMs);
  };
  return () => {
    if (waiting) requested = true;
    else start();
  };
}

/** Bring the cached runs of executions up to date, whether or not their page is shown at the moment. */
function patchLists(queries: QueryClient, events: LiveEvent[]): void {
  for (const [queryKey] of queries.getQueriesData<RunSummary[]>({ queryKey: ['runs', 'execution'] })) {
    const own = events.filter((event) => event.executionId === queryKey[2]);
    if (own.length === 0) continue;
    queries.setQueryData<RunSummary[]>(queryKey, (before) => before && patchedAll(before, own));
    // Events tell the outcome; errors in full are read once at the end.
    if (own.some((event) => OVER.has(event.kind))) void queries.invalidateQueries({ queryKey });
  }
}

/** Connect the stream of events to what is cached. Returns how to stop. */
export function keepFresh(feed: EventFeed, queries: QueryClient): () => void {
  const executions = new Set<string>();
  const refreshExecutions = throttled(() => {
    const ids = [...executions];
    executions.clear();
    return Promise.all(
      ids.flatMap((id) => [
        queries.invalidateQueries({ queryKey: ['executions', id] }),
        queries.invalidateQueries({ queryKey: ['stats', 'execution', id] }),
      ]),
    );
  }, EXECUTION_MS);
  const refreshFigures = throttled(
    () =>
      Promise.all([
        queries.invalidateQueries({
          predicate: ({ queryKey: [noun, kind] }) => noun === 'stats' && kind !== 'execution',
        }),
        queries.invalidateQueries({ queryKey: ['executions', 'list'] }),
      ]),
    FIGURES_MS,
  );
  const stopListening = feed.listen((events) => {
    const runs = new Set<string>();
    for (const event of events) {
      if (event.executionId) executions.add(event.executionId);
      if (event.runId) runs.add(event.runId);
    }
    void queries.invalidateQueries({
      predicate: ({ queryKey: [noun, id] }) => noun === 'runs' && runs.has(id as string),
    });
    patchLists(queries, events);
    refreshExecutions();
    refreshFigures();
  });
  const stopReopening = feed.onReopen(() => void queries.invalidateQueries());
  return () => {
    stopListening();
    stopReopening();
  };
}
