// One scenario.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { scenarioQuery } from '../../api/definitions';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { asStored } from './draft';
import { ScenarioEditor } from './ScenarioEditor';

const route = getRouteApi('/scenarios/$scenarioId');

export default function ScenarioPage() {
  const { scenarioId } = route.useParams();
  const scenario = useQuery(scenarioQuery(scenarioId));
  if (scenario.error && !scenario.data) {
    return <ErrorState error={scenario.error} onRetry={() => void scenario.refetch()} />;
  }
  if (!scenario.data) return <Loading />;
  return <ScenarioEditor key={scenarioId} scenario={asStored(scenario.data)} />;
}
