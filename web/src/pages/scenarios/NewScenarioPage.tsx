// A new scenario: blank, or drafted from a run.
import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { draftedScenarioQuery } from '../../api/definitions';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import type { Draft } from './draft';
import { ScenarioEditor } from './ScenarioEditor';

const route = getRouteApi('/scenarios/new');

export default function NewScenarioPage() {
  const { fromRun } = route.useSearch();
  return fromRun ? <DraftedScenario runId={fromRun} /> : <ScenarioEditor />;
}

function DraftedScenario({ runId }: { runId: string }) {
  const drafted = useQuery(draftedScenarioQuery(runId));
  if (drafted.error) return <ErrorState error={drafted.error} onRetry={() => void drafted.refetch()} />;
  if (!drafted.data) return <Loading rows={12} />;
  return (
    <>
      <Alert variant="light" mb="md" maw={960} title="Drafted from a run">
        It says what the user said in{' '}
        <PageLink to="/runs/$runId" params={{ runId }} inherit underline="always">
          this run
        </PageLink>{' '}
        and expects what the agent did then. If that was wrong, correct what is expected before you create it.
      </Alert>
      <ScenarioEditor proposed={drafted.data as Draft} />
    </>
  );
}
