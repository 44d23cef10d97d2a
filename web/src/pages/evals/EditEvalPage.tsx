// Changing an eval.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { evalQuery } from '../../api/queries';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { EvalEditor } from './EvalEditor';

const route = getRouteApi('/evals/$evalId/edit');

export default function EditEvalPage() {
  const { evalId } = route.useParams();
  const found = useQuery(evalQuery(evalId));
  if (found.error && !found.data) {
    return <ErrorState error={found.error} onRetry={() => void found.refetch()} />;
  }
  if (!found.data) return <Loading />;
  return <EvalEditor key={evalId} evaluation={found.data} />;
}
