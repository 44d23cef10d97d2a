// Where a scoring stands: under way, ended early, or whether its plan's limits were reached.
import type { Schemas } from '../../api/client';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import type { Standing } from '../../parts/outcome';
import { StandingBadge } from '../../parts/StandingBadge';

const ENDED_EARLY: Record<string, { standing: Standing; word: string }> = {
  running: { standing: 'running', word: 'Running' },
  failed: { standing: 'error', word: 'Failed' },
  cancelled: { standing: 'cancelled', word: 'Cancelled' },
  interrupted: { standing: 'cancelled', word: 'Interrupted' },
};

export function ScoringStatus({ scoring }: { scoring: Schemas['Scoring'] }) {
  const early = ENDED_EARLY[scoring.status];
  if (early) return <OutcomeBadge standing={early.standing} label={early.word} />;
  return <StandingBadge standing={scoring.standing ?? 'undecided'} />;
}
