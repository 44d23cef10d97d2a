import { describe, expect, it, vi } from 'vitest';
import type { Schemas } from './client';
import type { LiveEvent } from './events';
import { patched, patchedAll, throttled } from './updates';

const run: Schemas['RunSummary'] = {
  id: 'r1',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  executionId: 'x1',
  evalId: null,
  scenarioId: 's1',
  scenarioName: 'Greets',
  personaId: null,
  personaName: null,
  connectorId: 'c1',
  connectorName: 'Agent',
  caseName: null,
  repetition: 1,
  attempt: 1,
  status: 'queued',
  startedAt: null,
  completedAt: null,
  latencyMs: null,
  totalTokens: null,
  simulatorTokens: null,
  judgeTokens: null,
  agentCost: null,
  simulatorCost: null,
  judgeCost: null,
  turnCount: 0,
  threadId: null,
  result: null,
  error: null,
};

function event(kind: string, body: Record<string, unknown> = {}, second = 1, runId = 'r1'): LiveEvent {
  return { id: second, kind, executionId: 'x1', runId, at: `2026-01-01T00:00:0${second}.000Z`, body };
}

describe('a run after events', () => {
  it('is followed from its start to its end', () => {
    const events = [
      event('run.started', { attempt: 1 }, 1),
      event('run.turn', { turn: 1 }, 2),
      event('run.turn', { turn: 2 }, 3),
      event('run.finished', { outcome: 'fail', score: 0, reason: 'no', latencyMs: 12, totalTokens: 70 }, 4),
    ];
    const after = events.reduce(patched, run);
    expect(after).toMatchObject({ status: 'completed', turnCount: 2, latencyMs: 12, totalTokens: 70 });
    expect(after.result).toMatchObject({ outcome: 'fail', success: false, reason: 'no' });
  });

  it('that errored is an error, neither passed nor failed', () => {
    const after = patched(run, event('run.finished', { outcome: 'error', fault: 'agent' }));
    expect(after).toMatchObject({ status: 'error', result: { success: false, fault: 'agent', score: null } });
  });

  it('that is retried begins afresh', () => {
    const done = patched(run, event('run.finished', { outcome: 'error' }, 1));
    expect(patched(done, event('run.queued', { attempt: 2 }, 2))).toMatchObject({
      status: 'queued',
      attempt: 2,
      result: null,
      turnCount: 0,
    });
  });

  it('is not set back by an event older than what was read', () => {
    const fresh = { ...run, status: 'completed' as const, updatedAt: '2026-01-01T00:00:05.000Z' };
    expect(patched(fresh, event('run.started', {}, 1))).toBe(fresh);
  });
});

describe('runs after a batch of events', () => {
  it('are the same list when no event is about them', () => {
    const runs = [run];
    expect(patchedAll(runs, [event('run.started', {}, 1, 'other')])).toBe(runs);
  });

  it('lose those that were deleted', () => {
    expect(patchedAll([run], [event('run.deleted')])).toEqual([]);
  });
});

it('work that is requested often is done once per interval, and once more at the end', async () => {
  vi.useFakeTimers();
  const work = vi.fn(() => new Promise((done) => setTimeout(done, 50)));
  const request = throttled(work, 100);
  for (let time = 0; time < 500; time += 10) {
    request();
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(work).toHaveBeenCalledTimes(3);
  await vi.runAllTimersAsync();
  expect(work).toHaveBeenCalledTimes(4);
  vi.useRealTimers();
});
