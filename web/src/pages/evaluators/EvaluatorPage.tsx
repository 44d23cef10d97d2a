import { PageTitle } from '../../parts/PageTitle';

export default function EvaluatorPage() {
  return <PageTitle title="Evaluator" />;
}
