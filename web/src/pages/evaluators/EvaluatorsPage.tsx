import { PageTitle } from '../../parts/PageTitle';

export default function EvaluatorsPage() {
  return <PageTitle title="Evaluators" />;
}
