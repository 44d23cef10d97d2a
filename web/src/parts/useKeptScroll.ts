// Where a list was scrolled to is where it is again after going back to it.
import { useRouterState } from '@tanstack/react-router';
import { type RefObject, useEffect, useRef } from 'react';

const kept = new Map<string, number>();

/** Remembers how far an element was scrolled, for this place in the history; `ready` once its rows are there. */
export function useKeptScroll(box: RefObject<HTMLElement | null>, ready: boolean): void {
  const place = useRouterState({
    select: ({ location }) => `${location.pathname} ${location.state.__TSR_index ?? 0}`,
  });
  const restored = useRef(false);
  useEffect(() => {
    if (!ready || restored.current || !box.current) return;
    restored.current = true;
    box.current.scrollTop = kept.get(place) ?? 0;
  }, [ready, place, box]);
  useEffect(() => {
    const element = box.current;
    const keep = () => {
      if (restored.current && element) kept.set(place, element.scrollTop);
    };
    element?.addEventListener('scroll', keep, { passive: true });
    return () => element?.removeEventListener('scroll', keep);
  }, [place, box]);
}
