import { PageTitle } from '../../parts/PageTitle';

export default function ExecutionPage() {
  return <PageTitle title="Execution" />;
}
