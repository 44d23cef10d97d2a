// Editing one monitor.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { monitorQuery } from '../../api/monitors';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { MonitorEditor } from './MonitorEditor';

const route = getRouteApi('/monitors/$monitorId/edit');

export default function EditMonitorPage() {
  const { monitorId } = route.useParams();
  const monitor = useQuery(monitorQuery(monitorId));
  if (monitor.error && !monitor.data) {
    return <ErrorState error={monitor.error} onRetry={() => void monitor.refetch()} />;
  }
  if (!monitor.data) return <Loading />;
  return <MonitorEditor key={monitorId} monitor={monitor.data} />;
}
