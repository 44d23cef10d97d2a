import { PageTitle } from '../../parts/PageTitle';

export default function EvalsPage() {
  return <PageTitle title="Evals" />;
}
