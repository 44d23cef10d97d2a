// A plan that is edited as a form and as YAML at once. The server reads each and writes the other.
import { useEffect, useRef, useState } from 'react';
import type { Schemas } from '../../api/client';
import { checkPlan, readPlan } from '../../api/scoring';
import { notifyUndo } from '../../parts/undo';
import type { Plan } from './plan';

const TYPING_MS = 350;
/** Only whole lines: a # inside a pattern is no comment. */
const COMMENT_LINES = /^[ \t]*#.*(?:\n|$)/gm;

interface State {
  text: string;
  plan: Plan;
  problems: Schemas['PlanProblem'][];
  /** The file of the project that it is, as long as nothing is changed. */
  path: string | null;
  checking: boolean;
  failure: Error | null;
}

export interface PlanEditing extends State {
  setText: (text: string) => void;
  setPlan: (plan: Plan) => void;
  /** Begin with a plan of the project, or with an empty one. */
  open: (path: string | null) => void;
}

const EMPTY: State = {
  text: '',
  plan: { evaluators: [] },
  problems: [],
  path: null,
  checking: false,
  failure: null,
};

export function usePlan(): PlanEditing {
  const [state, setState] = useState(EMPTY);
  const turn = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  /** What is asked last is what is shown, whichever answer comes first. */
  const ask = (wait: number, question: () => Promise<Partial<State>>) => {
    clearTimeout(timer.current);
    turn.current += 1;
    const own = turn.current;
    timer.current = setTimeout(() => {
      question()
        .catch((failure: Error) => ({ failure }))
        .then((answer) => {
          if (own === turn.current) setState((before) => ({ ...before, ...answer, checking: false }));
        });
    }, wait);
  };
  const setText = (text: string) => {
    setState((before) => ({ ...before, text, path: null, checking: true, failure: null }));
    ask(TYPING_MS, async () => {
      const { plan, problems } = await checkPlan({ text });
      return plan ? { plan, problems } : { problems };
    });
  };
  const setPlan = (plan: Plan) => {
    if (state.text.search(COMMENT_LINES) >= 0)
      notifyUndo('The comments in the YAML are gone', () => setText(state.text));
    setState((before) => ({
      ...before,
      plan,
      text: before.text.replace(COMMENT_LINES, ''),
      path: null,
      checking: true,
      failure: null,
    }));
    ask(TYPING_MS, async () => {
      const { text, problems } = await checkPlan({ plan });
      return { text, problems };
    });
  };
  const open = (path: string | null) => {
    if (state.text && state.path === null)
      notifyUndo('What was written is replaced', () => setText(state.text));
    if (path === null) {
      turn.current += 1;
      setState(EMPTY);
      return;
    }
    setState((before) => ({ ...before, checking: true, failure: null }));
    ask(0, async () => {
      const { text, plan, problems } = await readPlan(path);
      return { text, problems, plan: plan ?? EMPTY.plan, path };
    });
  };
  return { ...state, setText, setPlan, open };
}
