import { PageTitle } from '../../parts/PageTitle';

export default function EvalPage() {
  return <PageTitle title="Eval" />;
}
