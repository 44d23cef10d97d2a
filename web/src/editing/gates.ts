// When an assertion must hold, in words.

export type Gate = 'always' | 'eventually' | 'finally';

export const GATES: Record<Gate, { label: string; meaning: string; measures: string }> = {
  always: { label: 'Always', meaning: 'must hold on every turn', measures: 'measures every turn' },
  eventually: {
    label: 'Eventually',
    meaning: 'must hold on at least one turn',
    measures: 'measures every turn',
  },
  finally: {
    label: 'Finally',
    meaning: 'must hold when the conversation is over',
    measures: 'measures when the conversation is over',
  },
};
