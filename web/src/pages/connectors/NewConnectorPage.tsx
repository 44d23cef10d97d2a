import { PageTitle } from '../../parts/PageTitle';

export default function NewConnectorPage() {
  return <PageTitle title="New connector" />;
}
