// One connector.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { connectorQuery } from '../../api/queries';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { ConnectorEditor } from './ConnectorEditor';

const route = getRouteApi('/connectors/$connectorId');

export default function ConnectorPage() {
  const { connectorId } = route.useParams();
  const connector = useQuery(connectorQuery(connectorId));
  if (connector.error && !connector.data) {
    return <ErrorState error={connector.error} onRetry={() => void connector.refetch()} />;
  }
  if (!connector.data) return <Loading />;
  return <ConnectorEditor key={connectorId} connector={connector.data} />;
}
