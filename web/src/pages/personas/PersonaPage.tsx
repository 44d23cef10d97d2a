// One persona.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { personaQuery } from '../../api/definitions';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PersonaEditor } from './PersonaEditor';

const route = getRouteApi('/personas/$personaId');

export default function PersonaPage() {
  const { personaId } = route.useParams();
  const persona = useQuery(personaQuery(personaId));
  if (persona.error && !persona.data) {
    return <ErrorState error={persona.error} onRetry={() => void persona.refetch()} />;
  }
  if (!persona.data) return <Loading />;
  return <PersonaEditor key={personaId} persona={persona.data} />;
}
