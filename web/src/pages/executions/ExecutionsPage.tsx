import { PageTitle } from '../../parts/PageTitle';

export default function ExecutionsPage() {
  return <PageTitle title="Executions" />;
}
