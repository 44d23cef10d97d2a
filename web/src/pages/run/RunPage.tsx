import { PageTitle } from '../../parts/PageTitle';

export default function RunPage() {
  return <PageTitle title="Run" />;
}
