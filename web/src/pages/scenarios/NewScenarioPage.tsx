import { PageTitle } from '../../parts/PageTitle';

export default function NewScenarioPage() {
  return <PageTitle title="New scenario" />;
}
