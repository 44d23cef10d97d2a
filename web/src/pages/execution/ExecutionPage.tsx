// An execution, live while it runs: progress, figures, and a row for every run.
import { Group, Text } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useCallback, useDeferredValue, useMemo, useState } from 'react';
import { BrokenPlugins } from '../../parts/BrokenPlugins';
import { ErrorState } from '../../parts/ErrorState';
import { EvaluatorsTable } from '../../parts/EvaluatorsTable';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOfExecution } from '../../parts/outcome';
import { PageTitle } from '../../parts/PageTitle';
import { RunsTable } from '../../parts/runs/RunsTable';
import { Actions } from './Actions';
import { ColumnChoice } from './ColumnChoice';
import { Filters } from './Filters';
import { Findings } from './Findings';
import { GroupChoice, Groups } from './Groups';
import { filteredRuns, type Run, type RunFilter } from './runs';
import { Summary } from './Summary';
import { useColumns } from './useColumns';
import { useExecution } from './useExecution';

const route = getRouteApi('/executions/$executionId');
const NONE: Run[] = [];
const NO_SUBJECTS = new Set<string>();

export default function ExecutionPage() {
  const { executionId } = route.useParams();
  // What was ticked or opened belongs to one execution.
  return <OneExecution key={executionId} executionId={executionId} />;
}

function OneExecution({ executionId }: { executionId: string }) {
  const filter = route.useSearch();
  const navigate = useNavigate({ from: '/executions/$executionId' });
  const { execution, runs, summary, flaky } = useExecution(executionId);
  const { columns, findings, figures, chosen, choosing, setChoosing } = useColumns(
    executionId,
    flaky,
    filter.columns,
  );
  const selection = useSelection();
  // Thousands of rows are not filtered again for subjects that are not asked for.
  const included = filter.show === 'flaky' ? flaky : NO_SUBJECTS;
  const matching = useMemo(
    () => filteredRuns(runs.data ?? NONE, filter, included),
    [runs.data, filter, included],
  );
  // Counters and filters answer at once; the rows follow as there is time.
  const rows = useDeferredValue(matching, NONE);

  const sort = useCallback(
    (column?: string) =>
      void navigate({ search: (before) => ({ ...before, sort: column }), replace: true, resetScroll: false }),
    [navigate],
  );

  const error = execution.error ?? summary.error ?? runs.error;
  if (error && !(execution.data && summary.data))
    return <ErrorState error={error} onRetry={() => void execution.refetch()} />;
  if (!execution.data || !summary.data) return <Loading rows={10} />;
  const { counts } = summary.data;
  const change = (next: RunFilter) =>
    void navigate({
      search: { ...next, show: next.show === 'all' ? undefined : next.show },
      replace: true,
      resetScroll: false,
    });
  return (
    <>
      <PageTitle
        title={execution.data.evalName ?? 'Single run'}
        above={[
          <PageLink key="all" to="/executions">
            Executions
          </PageLink>,
          execution.data.evalId ? (
            <PageLink key="eval" to="/evals/$evalId" params={{ evalId: execution.data.evalId }}>
              Eval
            </PageLink>
          ) : (
            <span key="try">Tried out</span>
          ),
        ]}
        beside={<OutcomeBadge standing={standingOfExecution({ ...execution.data, counts })} size="lg" />}
        actions={<Actions execution={execution.data} counts={counts} selected={selection.ids} />}
      />
      <BrokenPlugins />
      <Summary execution={execution.data} summary={summary.data} />
      <Findings execution={execution.data} summary={summary.data} />
      <Group justify="space-between" gap="xs" mb="sm">
        <Filters filter={filter} summary={summary.data} onChange={change} />
        <Group gap="xs">
          <GroupChoice value={filter.group} onChange={(group) => change({ ...filter, group })} />
          {!filter.group && (
            <ColumnChoice
              figures={figures}
              chosen={chosen}
              opened={choosing}
              onOpen={setChoosing}
              onChange={(names) => change({ ...filter, columns: names.length > 0 ? names : undefined })}
            />
          )}
        </Group>
      </Group>
      {runs.error && <ErrorState error={runs.error} onRetry={() => void runs.refetch()} />}
      {findings.error && <ErrorState error={findings.error} onRetry={() => void findings.refetch()} />}
      {filter.group === 'evaluator' && <EvaluatorsTable query={{ executionId }} />}
      {filter.group && filter.group !== 'evaluator' && <Groups executionId={executionId} by={filter.group} />}
      {!filter.group && runs.isPending && <Loading rows={10} />}
      {!filter.group && !runs.isPending && (
        <RunsTable
          runs={rows}
          columns={columns}
          sort={filter.sort}
          onSort={sort}
          selection={execution.data.evalId ? selection : undefined}
        />
      )}
      {!filter.group && runs.data && matching.length === 0 && (
        <Text size="sm" c="dimmed" mt="xs" role="status">
          {runs.data.length === 0
            ? 'This execution has no runs.'
            : 'No run matches. Choose All to see every run.'}
        </Text>
      )}
    </>
  );
}

/** The runs that are ticked. */
function useSelection() {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const onSelect = useCallback(
    (changed: string[], selected: boolean) =>
      setIds((before) => {
        const next = new Set(before);
        for (const id of changed) {
          if (selected) next.add(id);
          else next.delete(id);
        }
        return next;
      }),
    [],
  );
  return useMemo(() => ({ ids, onSelect }), [ids, onSelect]);
}
