import { PageTitle } from '../../parts/PageTitle';

export default function ConnectorsPage() {
  return <PageTitle title="Connectors" />;
}
