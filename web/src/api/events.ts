// Live events: one stream for the whole app, resumed after the last event seen, shared by all who listen.
// A hidden tab gives its connection back (browsers allow six per host) and catches up when it is shown again.
import { useEffect, useSyncExternalStore } from 'react';
import type { Schemas } from './client';

export type LiveEvent = Schemas['EventJson'];
export type Connection = 'connecting' | 'open' | 'lost';

const BATCH_MS = 150;
const RETRY_MS = 1_500;

type Listener = (events: LiveEvent[]) => void;

/** The stream of events. `onReopen` tells that something may have been missed. */
export class EventFeed {
  private source: EventSource | null = null;
  private lastId: number | null = null;
  private wasOpen = false;
  private state: Connection = 'connecting';
  private waiting: LiveEvent[] = [];
  private flushing: ReturnType<typeof setTimeout> | null = null;
  private retrying: ReturnType<typeof setTimeout> | null = null;
  private readonly listeners = new Set<Listener>();
  private readonly watchers = new Set<() => void>();
  private readonly reopeners = new Set<() => void>();

  constructor(private readonly path = '/api/events') {}

  start(): void {
    document.addEventListener('visibilitychange', this.onVisibility);
    if (!document.hidden) this.connect();
  }

  readonly connection = (): Connection => this.state;

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onReopen(reopener: () => void): () => void {
    this.reopeners.add(reopener);
    return () => this.reopeners.delete(reopener);
  }

  private readonly onVisibility = (): void => {
    if (document.hidden) this.disconnect();
    else if (!this.source) this.connect();
  };

  private connect(): void {
    this.disconnect();
    const after = this.lastId === null ? '' : `?after=${this.lastId}`;
    const source = new EventSource(this.path + after);
    this.source = source;
    source.onopen = () => {
      // Without an event to resume after, what happened while no connection was open is not told.
      const again = this.state === 'lost' || (this.wasOpen && this.lastId === null);
      this.wasOpen = true;
      this.become('open');
      if (again) for (const reopen of this.reopeners) reopen();
    };
    source.onmessage = (message) => this.take(JSON.parse(message.data) as LiveEvent);
    source.onerror = () => {
      this.become('lost');
      this.disconnect();
      this.retrying = setTimeout(() => this.connect(), RETRY_MS);
    };
  }

  private disconnect(): void {
    if (this.retrying) clearTimeout(this.retrying);
    this.retrying = null;
    this.source?.close();
    this.source = null;
  }

  private take(event: LiveEvent): void {
    this.lastId = event.id;
    this.waiting.push(event);
    this.flushing ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  private flush(): void {
    const events = this.waiting;
    this.waiting = [];
    this.flushing = null;
    for (const listener of this.listeners) listener(events);
  }

  private become(state: Connection): void {
    if (this.state === state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }
}

export const feed = new EventFeed();

export function useConnection(): Connection {
  return useSyncExternalStore(feed.watch, feed.connection);
}

/** Hear events in batches for as long as the component is shown. Give a stable function. */
export function useEvents(listener: Listener): void {
  useEffect(() => feed.listen(listener), [listener]);
}
