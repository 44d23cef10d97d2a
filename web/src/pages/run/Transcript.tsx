// The conversation as a chat. Only the rows in view are in the page, so that long ones open at once.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useMemo, useRef } from 'react';
import { duration } from '../../parts/numbers';
import { OUTCOME_STYLES, OutcomeBadge } from '../../parts/OutcomeBadge';
import { MessageView } from './MessageView';
import classes from './Run.module.css';
import { keyOf, type Result, standingOfResult, type Turn, titleOf } from './results';
import { scrollToRow } from './rowScroll';
import type { ChipsRow, Row, TurnRow } from './transcript';

const HEADER = 64;

interface Props {
  rows: Row[];
  quotes: string[];
  current: number;
  /** Scroll to this turn whenever the token changes */
  goTo: { turn: number; token: number } | null;
  onPick: (result: Result) => void;
}

export function Transcript({ rows, quotes, current, goTo, onPick }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const details = useMemo(
    () => new Map(rows.flatMap((row) => (row.kind === 'turn' ? [[row.turn, row.detail] as const] : []))),
    [rows],
  );
  const list = useWindowVirtualizer({
    count: rows.length,
    estimateSize: (index) => (rows[index]?.kind === 'message' ? 84 : 34),
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 4,
    useFlushSync: false,
    scrollMargin: box.current?.offsetTop ?? 0,
    scrollPaddingStart: HEADER,
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new wish scrolls, not new rows
  useEffect(() => {
    if (!goTo) return;
    const index = rows.findIndex((row) => row.kind === 'turn' && row.turn === goTo.turn);
    if (index >= 0) return scrollToRow(list, index);
  }, [goTo]);

  return (
    <div ref={box} style={{ height: list.getTotalSize(), position: 'relative' }}>
      {list.getVirtualItems().map((item) => {
        const row = rows[item.index];
        if (!row) return null;
        return (
          <div
            key={item.key}
            data-index={item.index}
            ref={list.measureElement}
            style={{
              position: 'absolute',
              width: '100%',
              paddingBottom: 8,
              transform: `translateY(${item.start - list.options.scrollMargin}px)`,
            }}
          >
            <RowView
              row={row}
              detail={details.get(row.turn) ?? null}
              quotes={quotes}
              current={row.turn === current}
              onPick={onPick}
            />
          </div>
        );
      })}
    </div>
  );
}

interface RowProps {
  row: Row;
  detail: Turn | null;
  quotes: string[];
  current: boolean;
  onPick: (result: Result) => void;
}

const RowView = memo(function RowView({ row, detail, quotes, current, onPick }: RowProps) {
  if (row.kind === 'turn') return <TurnMark row={row} current={current} />;
  if (row.kind === 'chips') return <Chips row={row} onPick={onPick} />;
  return <MessageView row={row} detail={detail} quotes={quotes} />;
});

function TurnMark({ row, current }: { row: TurnRow; current: boolean }) {
  return (
    <>
      <h3 className={classes.turn} data-current={current} aria-current={current ? 'step' : undefined}>
        {row.turn === 0 ? 'Before the first turn' : `Turn ${row.turn}`}
      </h3>
      {row.detail?.attempts && <Attempts attempts={row.detail.attempts} turn={row.turn} />}
    </>
  );
}

/** The calls that failed before the one that counts. */
function Attempts({ attempts, turn }: { attempts: NonNullable<Turn['attempts']>; turn: number }) {
  return (
    <ul className={classes.attempts} aria-label={`Attempts at turn ${turn}`}>
      {attempts.map(({ number, error, waitMs, retryAfter }) => (
        <li key={number}>
          Attempt {number}: {error ?? 'answered'}
          {waitMs !== null && `; waited ${duration(waitMs)}`}
          {retryAfter !== null && ` (it asked for ${retryAfter} s)`}
        </li>
      ))}
    </ul>
  );
}

function Chips({ row, onPick }: { row: ChipsRow; onPick: (result: Result) => void }) {
  const assertions = row.results.filter((result) => result.kind === 'assertion');
  return (
    <ul className={classes.chips} aria-label={`Evaluators after turn ${row.turn}`}>
      {assertions.map((result) => {
        const standing = standingOfResult(result);
        return (
          <li key={keyOf(result)}>
            <button
              type="button"
              title={`${OUTCOME_STYLES[standing].word}: ${result.reason}`}
              onClick={() => onPick(result)}
            >
              <OutcomeBadge standing={standing} label={titleOf(result)} size="sm" />
            </button>
          </li>
        );
      })}
    </ul>
  );
}
