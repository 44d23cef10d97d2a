// Runs as rows of which only those in view are in the page.
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useRef } from 'react';
import { duration, measure } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOf } from '../../parts/outcome';
import { RelativeTime } from '../../parts/RelativeTime';
import { useKeptScroll } from '../../parts/useKeptScroll';
import type { Run } from './filter';
import classes from './Runs.module.css';

const ROW = 37;
const NEAR_END = 30;
const COLUMNS = ['Result', 'Scenario', 'Connector', 'Started', 'Turns', 'Latency', 'Score', 'Reason'];

export function RunsList({ runs, onEnd }: { runs: Run[]; onEnd: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: runs.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 8,
    useFlushSync: false,
  });
  useKeptScroll(box, runs.length > 0);
  const rows = list.getVirtualItems();
  const last = rows.at(-1)?.index ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: more are read when the end comes near, not otherwise
  useEffect(() => {
    if (runs.length > 0 && last >= runs.length - NEAR_END) onEnd();
  }, [last, runs.length]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={box} className={classes.scroll} tabIndex={0} aria-label="Runs">
      <table aria-label="Runs" aria-rowcount={runs.length + 1} className={classes.table}>
        <thead className={classes.top}>
          <tr aria-rowindex={1} className={classes.head}>
            {COLUMNS.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className={classes.body} style={{ height: list.getTotalSize() }}>
          {rows.map((item) => {
            const run = runs[item.index];
            return run && <RunRow key={run.id} run={run} place={item.index} top={item.start} />;
          })}
        </tbody>
      </table>
    </section>
  );
}

const RunRow = memo(function RunRow({ run, place, top }: { run: Run; place: number; top: number }) {
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
      <td>
        <Link to="/runs/$runId" params={{ runId: run.id }} className={classes.link}>
          {[run.scenarioName, run.caseName, run.personaName].filter(Boolean).join(' · ')}
        </Link>
      </td>
      <td>{run.connectorName}</td>
      <td>
        <RelativeTime at={run.createdAt} />
      </td>
      <td className={classes.number}>{run.turnCount}</td>
      <td className={classes.number}>{run.latencyMs === null ? '' : duration(run.latencyMs)}</td>
      <td className={classes.number}>{run.result?.score == null ? '' : measure(run.result.score)}</td>
      <td title={reason} dir="auto">
        {reason}
      </td>
    </tr>
  );
});
