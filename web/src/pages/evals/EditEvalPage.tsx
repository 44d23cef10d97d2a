// Changing an eval.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { connectorsQuery, evalQuery, scenariosQuery } from '../../api/definitions';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { EvalEditor } from './EvalEditor';

const route = getRouteApi('/evals/$evalId/edit');

export default function EditEvalPage() {
  const { evalId } = route.useParams();
  const evaluation = useQuery(evalQuery(evalId));
  // Shown with the names in its lists: a form that grows under the pointer is clicked in the wrong place.
  const scenarios = useQuery(scenariosQuery);
  const connectors = useQuery(connectorsQuery);
  if (evaluation.error && !evaluation.data) {
    return <ErrorState error={evaluation.error} onRetry={() => void evaluation.refetch()} />;
  }
  if (!evaluation.data || scenarios.isPending || connectors.isPending) return <Loading />;
  return <EvalEditor key={evalId} evaluation={evaluation.data} />;
}
