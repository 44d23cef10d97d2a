import { PageTitle } from '../../parts/PageTitle';

export default function DashboardPage() {
  return <PageTitle title="Dashboard" />;
}
