// The runs of an execution as a table that holds only the rows in view; thousands scroll smoothly.
import { UnstyledButton } from '@mantine/core';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import {
  createColumnHelper,
  createSortedRowModel,
  rowSortingFeature,
  sortFn_alphanumeric,
  sortFn_basic,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useMemo, useRef } from 'react';
import { duration, measure } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOf } from '../../parts/outcome';
import { useKeptScroll } from '../../parts/useKeptScroll';
import classes from './Execution.module.css';
import { type Run, subjectKey } from './runs';

const ROW = 37;
const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { alphanumeric: sortFn_alphanumeric, basic: sortFn_basic },
});
const helper = createColumnHelper<typeof features, Run>();
const columns = helper.columns([
  helper.accessor(standingOf, { id: 'result', header: 'Result', sortFn: 'basic' }),
  helper.accessor(nameOf, { id: 'name', header: 'Scenario', sortFn: 'alphanumeric' }),
  helper.accessor((run) => run.connectorName ?? '', {
    id: 'connector',
    header: 'Connector',
    sortFn: 'alphanumeric',
  }),
  helper.accessor('repetition', { header: 'Repetition', sortFn: 'basic' }),
  helper.accessor('turnCount', { header: 'Turns', sortFn: 'basic' }),
  helper.accessor((run) => run.latencyMs ?? -1, { id: 'latency', header: 'Latency', sortFn: 'basic' }),
  helper.accessor((run) => run.result?.score ?? -1, { id: 'score', header: 'Score', sortFn: 'basic' }),
  helper.accessor((run) => run.error ?? run.result?.reason ?? '', {
    id: 'reason',
    header: 'Reason',
    sortFn: 'alphanumeric',
  }),
]);

const COLUMN_IDS = new Set([
  'result',
  'name',
  'connector',
  'repetition',
  'turnCount',
  'latency',
  'score',
  'reason',
]);

function nameOf(run: Run): string {
  return [run.scenarioName, run.caseName, run.personaName].filter(Boolean).join(' · ');
}

interface TableProps {
  runs: Run[];
  flaky: Set<string>;
  /** The column and direction as in the address: `latency`, or `-latency` for the largest first */
  sort?: string;
  onSort: (sort?: string) => void;
}

export const RunsTable = memo(function RunsTable({ runs, flaky, sort, onSort }: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const sorting = useMemo(
    () => (sort ? [{ id: sort.replace(/^-/, ''), desc: sort.startsWith('-') }] : []),
    [sort],
  );
  const known = sorting.filter(({ id }) => COLUMN_IDS.has(id));
  const table = useTable({
    features,
    columns,
    data: runs,
    getRowId: (run) => run.id,
    state: { sorting: known },
    onSortingChange: (change) => {
      const [next] = typeof change === 'function' ? change(known) : change;
      onSort(next && (next.desc ? `-${next.id}` : next.id));
    },
  });
  const { rows } = table.getRowModel();
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 6,
    useFlushSync: false,
  });
  useKeptScroll(box, rows.length > 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={box} className={classes.scroll} tabIndex={0} aria-label="Runs">
      <table aria-label="Runs" aria-rowcount={rows.length + 1} className={classes.table}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} aria-rowindex={1} className={classes.head}>
              {group.headers.map((header) => (
                <Heading
                  key={header.id}
                  label={String(header.column.columnDef.header)}
                  sorted={header.column.getIsSorted()}
                  onSort={() => header.column.toggleSorting()}
                />
              ))}
            </tr>
          ))}
        </thead>
        <tbody className={classes.body} style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const run = rows[item.index]?.original;
            return (
              run && (
                <RunRow
                  key={run.id}
                  run={run}
                  place={item.index}
                  top={item.start}
                  flaky={flaky.has(subjectKey(run))}
                />
              )
            );
          })}
        </tbody>
      </table>
    </section>
  );
});

interface HeadingProps {
  label: string;
  sorted: false | 'asc' | 'desc';
  onSort: () => void;
}

function Heading({ label, sorted, onSort }: HeadingProps) {
  const Arrow = sorted === 'asc' ? IconArrowUp : IconArrowDown;
  return (
    <th scope="col" aria-sort={sorted === 'asc' ? 'ascending' : sorted === 'desc' ? 'descending' : 'none'}>
      <UnstyledButton fz="xs" fw={650} onClick={onSort}>
        {label} {sorted && <Arrow size={12} aria-hidden />}
      </UnstyledButton>
    </th>
  );
}

interface RowProps {
  run: Run;
  place: number;
  top: number;
  flaky: boolean;
}

const RunRow = memo(function RunRow({ run, place, top, flaky }: RowProps) {
  const reason = run.error ?? run.result?.reason;
  return (
    <tr
      aria-rowindex={place + 2}
      className={classes.row}
      style={{ transform: `translateY(${top}px)`, height: ROW }}
    >
      <td>
        <OutcomeBadge standing={standingOf(run)} size="sm" />
      </td>
      <td className={classes.name}>
        <Link to="/runs/$runId" params={{ runId: run.id }} className={classes.link}>
          {nameOf(run)}
        </Link>
        {flaky && <span className={classes.flaky}>⚡ flaky</span>}
      </td>
      <td>{run.connectorName}</td>
      <td>
        {run.repetition}
        {run.attempt > 1 && <span title={`Attempt ${run.attempt}`}>′{run.attempt}</span>}
      </td>
      <td>{run.turnCount}</td>
      <td>{run.latencyMs === null ? '' : duration(run.latencyMs)}</td>
      <td>{run.result?.score == null ? '' : measure(run.result.score)}</td>
      <td title={reason}>{reason}</td>
    </tr>
  );
});
