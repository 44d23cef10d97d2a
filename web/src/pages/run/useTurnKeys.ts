// The keyboard of a run: j and k go through the turns, n goes to the next failure.
import { useHotkeys } from '@mantine/hooks';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useState } from 'react';
import type { Run } from './results';
import { failedTurns, nextAfter } from './transcript';

const route = getRouteApi('/runs/$runId');

export function useTurnKeys(run: Run | undefined) {
  const { turn } = route.useSearch();
  const navigate = useNavigate({ from: '/runs/$runId' });
  const current = turn ?? 1;
  const [goTo, setGoTo] = useState<{ turn: number } | null>(null);
  const turns = useMemo(() => (run?.turns ?? []).map((one) => one.turn), [run]);
  const failed = useMemo(() => (run ? failedTurns(run) : []), [run]);

  // The turn stands in the address: a link leads to it, and it is there again after going back.
  useEffect(() => {
    if (turn !== undefined) setGoTo({ turn });
  }, [turn]);

  const go = useCallback(
    (next: number) => {
      setGoTo({ turn: next });
      void navigate({
        search: (before) => ({ ...before, turn: next }),
        replace: true,
        resetScroll: false,
      });
    },
    [navigate],
  );
  const step = (by: 1 | -1) => {
    const next = turns[turns.indexOf(current) + by];
    if (next !== undefined) go(next);
  };
  useHotkeys([
    ['j', () => step(1)],
    ['k', () => step(-1)],
    [
      'n',
      () => {
        const next = nextAfter(failed, goTo ? current : -1);
        if (next !== undefined) go(next);
      },
    ],
  ]);
  return { current, goTo, go, failures: failed.length };
}
