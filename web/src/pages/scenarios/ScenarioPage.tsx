import { PageTitle } from '../../parts/PageTitle';

export default function ScenarioPage() {
  return <PageTitle title="Scenario" />;
}
