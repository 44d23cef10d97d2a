import { PageTitle } from '../../parts/PageTitle';

export default function EditEvalPage() {
  return <PageTitle title="Edit eval" />;
}
