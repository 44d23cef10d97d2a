// A results file of the project that `evalstudio score -o` wrote, opened.
import { getRouteApi } from '@tanstack/react-router';
import { PageLink } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';
import { CompareWith, Results } from './Results';

const route = getRouteApi('/scoring/results');

export default function ResultsPage() {
  const { path, outcome = '' } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <>
      <PageTitle
        title={path || 'Results'}
        above={[
          <PageLink key="all" to="/scoring">
            Scoring
          </PageLink>,
        ]}
        actions={<CompareWith path={path} />}
      />
      <Results
        path={path}
        outcome={outcome}
        onOutcome={(next) => void navigate({ search: { path, outcome: next || undefined }, replace: true })}
      />
    </>
  );
}
