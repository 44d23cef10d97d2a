import { PageTitle } from '../../parts/PageTitle';

export default function ScenariosPage() {
  return <PageTitle title="Scenarios" />;
}
