// The columns of an execution's runs: always the same ones, and those of the evaluators that were chosen.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { evaluatorStatsQuery, findingsQuery } from '../../api/figures';
import {
  CONNECTOR,
  findingColumn,
  LATENCY,
  nameColumn,
  REASON,
  REPETITION,
  RESULT,
  type RunColumn,
  SCORE,
  TURNS,
} from '../../parts/runs/columns';
import { subjectKey } from './runs';

const NONE: string[] = [];

export function useColumns(executionId: string, flaky: Set<string>, chosen: string[] = NONE) {
  const [choosing, setChoosing] = useState(false);
  const findings = useQuery(findingsQuery(executionId, chosen));
  // Reads the results of thousands of runs: only when somebody looks.
  const figures = useQuery({
    ...evaluatorStatsQuery({ executionId }),
    enabled: choosing || chosen.length > 0,
  });
  const columns = useMemo((): RunColumn[] => {
    const metrics = new Set(
      figures.data?.evaluators.filter((one) => one.kind === 'metric').map((one) => one.name),
    );
    const own = chosen.map((name) =>
      findingColumn(name, metrics.has(name), (run) => findings.data?.get(run.id)?.get(name) ?? undefined),
    );
    const name = nameColumn((run) => flaky.has(subjectKey(run)));
    return [RESULT, name, CONNECTOR, REPETITION, TURNS, LATENCY, SCORE, ...own, REASON];
  }, [chosen, findings.data, figures.data, flaky]);
  return { columns, findings, figures, chosen, choosing, setChoosing };
}
