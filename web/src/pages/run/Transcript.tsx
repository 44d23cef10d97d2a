// The conversation as a chat. Only the rows in view are in the page, so that long ones open at once.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useMemo, useRef } from 'react';
import { duration } from '../../parts/numbers';
import { LongText } from './Markdown';
import { MessageView } from './MessageView';
import { PlainFallback } from './PlainFallback';
import classes from './Run.module.css';
import type { Turn } from './results';
import { scrollToRow } from './rowScroll';
import { TurnResults } from './TurnResults';
import type { ChipsRow, MessageRow, Row, TurnRow } from './transcript';

const HEADER = 64;

interface Props {
  rows: Row[];
  quotes: string[];
  current: number;
  /** Scroll to this turn whenever it is another object */
  goTo: { turn: number } | null;
  /** Scroll to this row whenever it is another object */
  found?: { index: number } | null;
  /** The results of single turns that are shown in full */
  opened: ReadonlySet<string>;
  onToggle: (key: string) => void;
  plain?: boolean;
}

export function Transcript({ rows, quotes, current, goTo, found, opened, onToggle, plain = false }: Props) {
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

  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new wish scrolls, not new rows
  useEffect(() => {
    if (found) return scrollToRow(list, found.index);
  }, [found]);

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
              opened={opened}
              onToggle={onToggle}
              plain={plain}
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
  opened: ReadonlySet<string>;
  onToggle: (key: string) => void;
  plain: boolean;
}

const RowView = memo(function RowView(props: RowProps) {
  const { row, detail, quotes, current, opened, onToggle, plain } = props;
  if (row.kind === 'turn') return <TurnMark row={row} current={current} />;
  return (
    <PlainFallback fallback={<Undrawn row={row} />}>
      {row.kind === 'chips' ? (
        <TurnResults row={row} opened={opened} onToggle={onToggle} />
      ) : (
        <MessageView row={row} detail={detail} quotes={quotes} plain={plain} />
      )}
    </PlainFallback>
  );
});

/** What a row holds, where it cannot be drawn as it should be. */
function Undrawn({ row }: { row: MessageRow | ChipsRow }) {
  const held = row.kind === 'message' ? row.message : row.results;
  return (
    <article className={classes.message}>
      <div className={classes.who}>This could not be shown as a message; here it is as it was stored.</div>
      <LongText text={JSON.stringify(held, null, 2)} />
    </article>
  );
}

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
