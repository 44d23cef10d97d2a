// The runs of an execution as a table that holds only the rows in view; thousands scroll smoothly.
import { Box, Text, UnstyledButton } from '@mantine/core';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
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
import { memo, useRef } from 'react';
import { PageLink } from '../../parts/links';
import { duration, measure } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOf } from '../../parts/outcome';
import classes from './Execution.module.css';
import { type Run, sameThing } from './runs';

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
  helper.accessor('repetition', { header: 'Rep.', sortFn: 'basic' }),
  helper.accessor('turnCount', { header: 'Turns', sortFn: 'basic' }),
  helper.accessor((run) => run.latencyMs ?? -1, { id: 'latency', header: 'Latency', sortFn: 'basic' }),
  helper.accessor((run) => run.result?.score ?? -1, { id: 'score', header: 'Score', sortFn: 'basic' }),
  helper.accessor((run) => run.error ?? run.result?.reason ?? '', {
    id: 'reason',
    header: 'Reason',
    sortFn: 'alphanumeric',
  }),
]);

function nameOf(run: Run): string {
  return [run.scenarioName, run.caseName, run.personaName].filter(Boolean).join(' · ');
}

export function RunsTable({ runs, flaky }: { runs: Run[]; flaky: Set<string> }) {
  const box = useRef<HTMLDivElement>(null);
  const table = useTable({ features, columns, data: runs, getRowId: (run) => run.id });
  const { rows } = table.getRowModel();
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={box} className={classes.scroll} tabIndex={0} aria-label="Runs">
      {/* biome-ignore lint/a11y/useSemanticElements: rows that are not in view are not in the page */}
      <div role="table" aria-label="Runs" aria-rowcount={rows.length + 1} className={classes.table}>
        {table.getHeaderGroups().map((group) => (
          // biome-ignore lint/a11y/useSemanticElements: as above
          // biome-ignore lint/a11y/useFocusableInteractive: rows are not interactive
          <div key={group.id} role="row" aria-rowindex={1} className={classes.head}>
            {group.headers.map((header) => (
              <Heading
                key={header.id}
                label={String(header.column.columnDef.header)}
                sorted={header.column.getIsSorted()}
                onSort={() => header.column.toggleSorting()}
              />
            ))}
          </div>
        ))}
        {/* biome-ignore lint/a11y/useSemanticElements: as above */}
        <div role="rowgroup" style={{ height: list.getTotalSize(), position: 'relative' }}>
          {list.getVirtualItems().map((item) => {
            const run = rows[item.index]?.original;
            return (
              run && (
                <RunRow
                  key={run.id}
                  run={run}
                  place={item.index}
                  top={item.start}
                  flaky={flaky.has(sameThing(run))}
                />
              )
            );
          })}
        </div>
      </div>
    </section>
  );
}

interface HeadingProps {
  label: string;
  sorted: false | 'asc' | 'desc';
  onSort: () => void;
}

function Heading({ label, sorted, onSort }: HeadingProps) {
  const Arrow = sorted === 'asc' ? IconArrowUp : IconArrowDown;
  return (
    <div
      // biome-ignore lint/a11y/useSemanticElements: see RunsTable
      role="columnheader"
      tabIndex={-1}
      aria-sort={sorted === 'asc' ? 'ascending' : sorted === 'desc' ? 'descending' : 'none'}
    >
      <UnstyledButton fz="xs" fw={650} onClick={onSort}>
        {label} {sorted && <Arrow size={12} aria-hidden />}
      </UnstyledButton>
    </div>
  );
}

interface RowProps {
  run: Run;
  place: number;
  top: number;
  flaky: boolean;
}

const RunRow = memo(function RunRow({ run, place, top, flaky }: RowProps) {
  return (
    <div
      // biome-ignore lint/a11y/useSemanticElements: see RunsTable
      role="row"
      tabIndex={-1}
      aria-rowindex={place + 2}
      className={classes.row}
      style={{ transform: `translateY(${top}px)`, height: ROW }}
    >
      <Cell>
        <OutcomeBadge standing={standingOf(run)} size="sm" />
      </Cell>
      <Cell>
        <PageLink to="/runs/$runId" params={{ runId: run.id }} size="sm" truncate display="block">
          {nameOf(run)}
        </PageLink>
        {flaky && (
          <Text span size="xs" c="dimmed" ml={4}>
            ⚡ flaky
          </Text>
        )}
      </Cell>
      <Cell>{run.connectorName}</Cell>
      <Cell>
        {run.repetition}
        {run.attempt > 1 && <span title={`Attempt ${run.attempt}`}>′{run.attempt}</span>}
      </Cell>
      <Cell>{run.turnCount}</Cell>
      <Cell>{run.latencyMs === null ? '' : duration(run.latencyMs)}</Cell>
      <Cell>{run.result?.score == null ? '' : measure(run.result.score)}</Cell>
      <Cell title={run.error ?? run.result?.reason}>{run.error ?? run.result?.reason}</Cell>
    </div>
  );
});

function Cell({ children, title }: { children: React.ReactNode; title?: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see RunsTable
    <Box role="cell" className={classes.cell} title={title}>
      {children}
    </Box>
  );
}
