import { PageTitle } from '../../parts/PageTitle';

export default function ConnectorPage() {
  return <PageTitle title="Connector" />;
}
