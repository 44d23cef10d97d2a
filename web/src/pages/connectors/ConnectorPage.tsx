// One connector.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { connectorQuery, connectorTypesQuery } from '../../api/definitions';
import { formQuery } from '../../forms/ConfigForm';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { ConnectorEditor } from './ConnectorEditor';

const route = getRouteApi('/connectors/$connectorId');

export default function ConnectorPage() {
  const { connectorId } = route.useParams();
  const connector = useQuery(connectorQuery(connectorId));
  const types = useQuery(connectorTypesQuery);
  const form = useQuery(formQuery);
  if (connector.error && !connector.data) {
    return <ErrorState error={connector.error} onRetry={() => void connector.refetch()} />;
  }
  if (!connector.data || types.isPending || form.isPending) return <Loading />;
  return <ConnectorEditor key={connectorId} connector={connector.data} />;
}
