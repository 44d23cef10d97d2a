// When an assertion must hold, in words.

export type Gate = 'always' | 'eventually' | 'finally';

export const GATES: Record<Gate, { label: string; meaning: string; measures: string }> = {
  always: { label: 'On every turn', meaning: 'must hold on every turn', measures: 'measures every turn' },
  eventually: {
    label: 'On at least one turn',
    meaning: 'must hold on at least one turn',
    measures: 'measures every turn',
  },
  finally: {
    label: 'At the end',
    meaning: 'must hold when the conversation is over',
    measures: 'measures when the conversation is over',
  },
};
