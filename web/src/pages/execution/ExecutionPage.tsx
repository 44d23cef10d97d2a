// An execution, live while it runs: progress, figures, and a row for every run.
import { Text } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useMemo } from 'react';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOfExecution } from '../../parts/outcome';
import { PageTitle } from '../../parts/PageTitle';
import { Actions } from './Actions';
import { Filters } from './Filters';
import { RunsTable } from './RunsTable';
import { chosen, type Run, sameThing, type Wanted } from './runs';
import { Summary } from './Summary';
import { useExecution } from './useExecution';

const route = getRouteApi('/executions/$executionId');
const NONE: Run[] = [];

export default function ExecutionPage() {
  const { executionId } = route.useParams();
  const wanted = route.useSearch();
  const navigate = useNavigate({ from: '/executions/$executionId' });
  const { execution, runs, counts, flaky } = useExecution(executionId);
  const found = useMemo(() => chosen(runs.data ?? [], wanted, flaky), [runs.data, wanted, flaky]);
  // Counters and filters answer at once; the rows follow as there is time.
  const shown = useDeferredValue(found, NONE);
  const flakyRuns = useMemo(
    () => (flaky.size > 0 ? (runs.data ?? []).filter((run) => flaky.has(sameThing(run))).length : 0),
    [runs.data, flaky],
  );

  const error = execution.error ?? runs.error;
  if (error && !execution.data) return <ErrorState error={error} onRetry={() => void execution.refetch()} />;
  if (!execution.data || !counts) return <Loading rows={10} />;
  const change = (next: Wanted) =>
    void navigate({ search: { ...next, show: next.show === 'all' ? undefined : next.show }, replace: true });
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
            <span key="try">Try</span>
          ),
        ]}
        beside={<OutcomeBadge standing={standingOfExecution({ ...execution.data, counts })} size="lg" />}
        actions={<Actions execution={execution.data} counts={counts} />}
      />
      <Summary execution={execution.data} counts={counts} runs={runs.data ?? []} />
      <Filters wanted={wanted} counts={counts} flakyRuns={flakyRuns} onChange={change} />
      {runs.error && <ErrorState error={runs.error} onRetry={() => void runs.refetch()} />}
      {runs.isPending ? <Loading rows={10} /> : <RunsTable runs={shown} flaky={flaky} />}
      {runs.data && found.length === 0 && (
        <Text size="sm" c="dimmed" mt="xs" role="status">
          {runs.data.length === 0
            ? 'This execution has no runs.'
            : 'No run matches. Choose All to see every run.'}
        </Text>
      )}
    </>
  );
}
