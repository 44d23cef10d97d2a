import { PageTitle } from '../../parts/PageTitle';

export default function NewPersonaPage() {
  return <PageTitle title="New persona" />;
}
