import { PageTitle } from '../../parts/PageTitle';

export default function PersonasPage() {
  return <PageTitle title="Personas" />;
}
