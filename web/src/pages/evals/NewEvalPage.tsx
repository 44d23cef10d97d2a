import { PageTitle } from '../../parts/PageTitle';

export default function NewEvalPage() {
  return <PageTitle title="New eval" />;
}
