import { PageTitle } from '../../parts/PageTitle';

export default function SettingsPage() {
  return <PageTitle title="Settings" />;
}
