// The state of the project at a glance; a project without executions shows the way to the first one.
import { useQuery } from '@tanstack/react-query';
import { executionsQuery } from '../../api/runs';
import { BrokenPlugins } from '../../parts/BrokenPlugins';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageTitle } from '../../parts/PageTitle';
import { Home } from '../home/Home';
import { FirstSteps } from './FirstSteps';

export default function DashboardPage() {
  const recent = useQuery(executionsQuery({ limit: 8 }));
  return (
    <>
      <PageTitle title="Home" />
      <BrokenPlugins />
      {recent.error && <ErrorState error={recent.error} onRetry={() => void recent.refetch()} />}
      {recent.isPending && <Loading rows={10} />}
      {recent.data?.items.length === 0 && <FirstSteps />}
      {recent.data && recent.data.items.length > 0 && <Home />}
    </>
  );
}
