// Runs as a table that holds only the rows in view; thousands scroll smoothly.
import { UnstyledButton } from '@mantine/core';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type CSSProperties, memo, useEffect, useMemo, useRef } from 'react';
import { useKeptScroll } from '../useKeptScroll';
import { nameOf, type Run, type RunColumn } from './columns';
import { nextSort, sorted } from './order';
import classes from './RunsTable.module.css';

const ROW = 37;
const NEAR_END = 30;

export interface Selection {
  ids: ReadonlySet<string>;
  onSelect: (ids: string[], selected: boolean) => void;
}

interface TableProps {
  runs: Run[];
  columns: RunColumn[];
  /** The column and direction as in the address: `latency`, or `-latency` for the largest first */
  sort?: string;
  onSort?: (sort?: string) => void;
  selection?: Selection;
  /** The last rows come near */
  onEnd?: () => void;
}

export const RunsTable = memo(function RunsTable({
  runs,
  columns,
  sort,
  onSort,
  selection,
  onEnd,
}: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => sorted(runs, columns, sort), [runs, columns, sort]);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 4,
    useFlushSync: false,
  });
  useKeptScroll(box, rows.length > 0);
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: more are read when the end comes near, not otherwise
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - NEAR_END) onEnd?.();
  }, [last, rows.length]);
  const tracks = [selection ? ['20px'] : [], columns.map(({ width }) => width)].flat().join(' ');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={box} className={classes.scroll} tabIndex={0} aria-label="Runs">
      <table
        aria-label="Runs"
        aria-rowcount={rows.length + 1}
        className={classes.table}
        style={{ '--tracks': tracks } as CSSProperties}
      >
        <thead className={classes.top}>
          <tr aria-rowindex={1} className={classes.head}>
            {selection && <SelectAll rows={rows} selection={selection} />}
            {columns.map((column) => (
              <Heading key={column.id} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody className={classes.body} style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const run = rows[item.index];
            return (
              run && (
                <RunRow
                  key={run.id}
                  run={run}
                  columns={columns}
                  place={item.index}
                  top={item.start}
                  selected={selection?.ids.has(run.id)}
                  onSelect={selection?.onSelect}
                />
              )
            );
          })}
        </tbody>
      </table>
    </section>
  );
});

function SelectAll({ rows, selection }: { rows: Run[]; selection: Selection }) {
  // Thousands of rows would be looked through at every step of scrolling.
  const chosen = useMemo(() => rows.filter((run) => selection.ids.has(run.id)).length, [rows, selection.ids]);
  return (
    <th scope="col">
      <input
        type="checkbox"
        className={classes.tick}
        aria-label="Select all shown"
        checked={rows.length > 0 && chosen === rows.length}
        ref={(box) => {
          if (box) box.indeterminate = chosen > 0 && chosen < rows.length;
        }}
        onChange={(event) =>
          selection.onSelect(
            rows.map((run) => run.id),
            event.currentTarget.checked,
          )
        }
      />
    </th>
  );
}

interface HeadingProps {
  column: RunColumn;
  sort?: string;
  onSort?: (sort?: string) => void;
}

function Heading({ column: { id, head, number, order }, sort, onSort }: HeadingProps) {
  const direction = sort === id ? 'ascending' : sort === `-${id}` ? 'descending' : 'none';
  const Arrow = direction === 'ascending' ? IconArrowUp : IconArrowDown;
  const className = number ? classes.number : undefined;
  if (!onSort || !order)
    return (
      <th scope="col" className={className} title={head}>
        {head}
      </th>
    );
  return (
    <th scope="col" className={className} aria-sort={direction} title={head}>
      <UnstyledButton className={classes.sort} onClick={() => onSort(nextSort(id, sort))}>
        {head} {direction !== 'none' && <Arrow size={12} aria-hidden />}
      </UnstyledButton>
    </th>
  );
}

interface RowProps {
  run: Run;
  columns: RunColumn[];
  place: number;
  top: number;
  selected?: boolean;
  onSelect?: Selection['onSelect'];
}

const RunRow = memo(function RunRow({ run, columns, place, top, selected, onSelect }: RowProps) {
  return (
    <tr
      aria-rowindex={place + 2}
      aria-selected={onSelect && selected}
      className={classes.row}
      style={{ transform: `translateY(${top}px)`, height: ROW }}
    >
      {onSelect && (
        <td>
          <input
            type="checkbox"
            className={classes.tick}
            aria-label={`Select ${nameOf(run)}, repetition ${run.repetition}`}
            checked={selected}
            onChange={(event) => onSelect([run.id], event.currentTarget.checked)}
          />
        </td>
      )}
      {columns.map(({ id, number, cell, title }) => (
        <td key={id} className={number ? classes.number : undefined} title={title?.(run)}>
          {cell(run)}
        </td>
      ))}
    </tr>
  );
});
