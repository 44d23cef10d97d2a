// The keyboard of a run: j and k go through the turns, n goes to the next failure.
import { useHotkeys } from '@mantine/hooks';
import { useCallback, useMemo, useState } from 'react';
import type { Run } from './results';
import { failedTurns, nextAfter } from './transcript';

export function useTurnKeys(run: Run | undefined, first: number | undefined) {
  const [current, setCurrent] = useState(first ?? 1);
  const [goTo, setGoTo] = useState(first === undefined ? null : { turn: first, token: 0 });
  const turns = useMemo(() => (run?.turns ?? []).map((turn) => turn.turn), [run]);
  const failed = useMemo(() => (run ? failedTurns(run) : []), [run]);

  const go = useCallback((turn: number) => {
    setCurrent(turn);
    setGoTo((before) => ({ turn, token: (before?.token ?? 0) + 1 }));
  }, []);
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
