// The columns that tables of runs choose from.
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client';
import { duration, measure } from '../numbers';
import { OutcomeBadge } from '../OutcomeBadge';
import { type Standing, standingOf } from '../outcome';
import { RelativeTime } from '../RelativeTime';
import classes from './RunsTable.module.css';

export type Run = Schemas['RunSummary'];

export interface RunColumn {
  id: string;
  head: string;
  /** A track of the grid */
  width: string;
  /** Numbers stand at the right */
  number?: boolean;
  cell: (run: Run) => ReactNode;
  /** What rows are sorted by; what has none comes last. Without it the column cannot be sorted */
  order?: (run: Run) => number | string | null | undefined;
  /** The whole text, where a cell may be too narrow for it */
  title?: (run: Run) => string | undefined;
}

export function nameOf(run: Run): string {
  return [run.scenarioName, run.caseName, run.personaName].filter(Boolean).join(' · ');
}

function reasonOf(run: Run): string | undefined {
  return run.error ?? run.result?.reason ?? undefined;
}

export const RESULT: RunColumn = {
  id: 'result',
  head: 'Result',
  width: '116px',
  cell: (run) => <OutcomeBadge standing={standingOf(run)} />,
  order: standingOf,
};

export const nameColumn = (isFlaky: (run: Run) => boolean = () => false): RunColumn => ({
  id: 'name',
  head: 'Scenario',
  width: 'minmax(180px, 2fr)',
  cell: (run) => (
    <>
      <Link to="/runs/$runId" params={{ runId: run.id }} className={classes.link}>
        {nameOf(run)}
      </Link>
      {isFlaky(run) && <span className={classes.flaky}> ⚡ flaky</span>}
    </>
  ),
  order: nameOf,
  title: nameOf,
});

export const CONNECTOR: RunColumn = {
  id: 'connector',
  head: 'Connector',
  width: 'minmax(90px, 1fr)',
  cell: (run) => run.connectorName,
  order: (run) => run.connectorName,
};

export const REPETITION: RunColumn = {
  id: 'repetition',
  head: 'Repetition',
  width: '92px',
  number: true,
  cell: (run) =>
    run.attempt > 1 ? (
      <span title={`Attempt ${run.attempt}`}>{`${run.repetition} · try ${run.attempt}`}</span>
    ) : (
      run.repetition
    ),
  order: (run) => run.repetition,
};

export const STARTED: RunColumn = {
  id: 'started',
  head: 'Started',
  width: '110px',
  cell: (run) => <RelativeTime at={run.createdAt} />,
  order: (run) => run.createdAt,
};

export const TURNS: RunColumn = {
  id: 'turnCount',
  head: 'Turns',
  width: '62px',
  number: true,
  cell: (run) => run.turnCount,
  order: (run) => run.turnCount,
};

export const LATENCY: RunColumn = {
  id: 'latency',
  head: 'Latency',
  width: '84px',
  number: true,
  cell: (run) => (run.latencyMs === null ? '' : duration(run.latencyMs)),
  order: (run) => run.latencyMs,
};

export const SCORE: RunColumn = {
  id: 'score',
  head: 'Score',
  width: '68px',
  number: true,
  cell: (run) => (run.result?.score == null ? '' : measure(run.result.score)),
  order: (run) => run.result?.score,
};

export const REASON: RunColumn = {
  id: 'reason',
  head: 'Reason',
  width: 'minmax(180px, 3fr)',
  cell: (run) => <bdi>{reasonOf(run)}</bdi>,
  order: reasonOf,
  title: reasonOf,
};

type Cell = Schemas['FindingCell'];
const NUMBER_WORDS = new Set(['measured', 'missing']);

/** What one evaluator found in each run. */
export function findingColumn(
  name: string,
  metric: boolean,
  cellOf: (run: Run) => Cell | undefined,
): RunColumn {
  return {
    id: `evaluator:${name}`,
    head: name,
    width: '116px',
    number: metric,
    cell: (run) => <FindingText cell={cellOf(run)} />,
    order: (run) => orderOf(cellOf(run)),
    title: (run) => cellOf(run)?.reason,
  };
}

function FindingText({ cell }: { cell?: Cell }) {
  if (!cell) return null;
  if (!NUMBER_WORDS.has(cell.word)) return <OutcomeBadge standing={cell.word as Standing} />;
  if (cell.word === 'missing' || cell.value === null) return <span className={classes.flaky}>missing</span>;
  return `${measure(cell.value)} ${cell.unit ?? ''}`;
}

function orderOf(cell?: Cell): number | string | null | undefined {
  return cell && (NUMBER_WORDS.has(cell.word) ? cell.value : cell.word);
}
