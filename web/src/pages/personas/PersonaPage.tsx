import { PageTitle } from '../../parts/PageTitle';

export default function PersonaPage() {
  return <PageTitle title="Persona" />;
}
