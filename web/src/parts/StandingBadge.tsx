// Whether a requirement was reached: icon, word and colour together.
import { OutcomeBadge } from './OutcomeBadge';
import type { Standing } from './outcome';

type Reached = 'met' | 'missed' | 'undecided';

const STANDINGS: Record<Reached, { standing: Standing; word: string }> = {
  met: { standing: 'pass', word: 'Met' },
  missed: { standing: 'fail', word: 'Missed' },
  undecided: { standing: 'pending', word: 'Undecided' },
};

export function StandingBadge({ standing }: { standing: Reached }) {
  return <OutcomeBadge standing={STANDINGS[standing].standing} label={STANDINGS[standing].word} />;
}
