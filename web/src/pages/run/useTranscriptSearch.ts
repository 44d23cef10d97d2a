// Searching a conversation: which rows say it, and going from one to the next.
import { useMemo, useState } from 'react';
import { type Row, rowText } from './transcript';

export interface TranscriptSearch {
  text: string;
  /** How many messages say it */
  found: number;
  /** Which of them is looked at, from one */
  place: number;
  change: (text: string) => void;
  step: (by: 1 | -1) => void;
  /** The row to scroll to; a new object whenever it is asked for */
  target: { index: number } | null;
}

export function useTranscriptSearch(rows: Row[]): TranscriptSearch {
  const [text, setText] = useState('');
  const [place, setPlace] = useState(0);
  const [target, setTarget] = useState<{ index: number } | null>(null);
  const matches = useMemo(() => matchingRows(rows, text), [rows, text]);

  const change = (next: string) => {
    setText(next);
    setPlace(0);
    const [first] = matchingRows(rows, next);
    setTarget(first === undefined ? null : { index: first });
  };
  const step = (by: 1 | -1) => {
    if (matches.length === 0) return;
    const next = (place + by + matches.length) % matches.length;
    setPlace(next);
    setTarget({ index: matches[next] ?? 0 });
  };
  return { text, found: matches.length, place: place + 1, change, step, target };
}

/** The places of the rows whose text has these words in it, whatever their case. */
export function matchingRows(rows: Row[], text: string): number[] {
  const words = text.trim().toLowerCase();
  if (!words) return [];
  return rows.flatMap((row, index) => (rowText(row).toLowerCase().includes(words) ? [index] : []));
}
