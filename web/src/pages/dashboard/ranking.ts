// Which scenarios deserve a look: those that sometimes pass and sometimes do not, and those that take longest.
import type { Schemas } from '../../api/client';

type Figures = Schemas['Figures'];

/** How undecided a scenario is: 0 when it always or never passes, 1 at half and half. */
export function unsteadiness(figures: Figures): number {
  const { rate } = figures.passRateOfAttempted;
  return rate === null ? 0 : 4 * rate * (1 - rate);
}

export function flakiest(all: Figures[], most = 5): Figures[] {
  return all
    .filter((figures) => unsteadiness(figures) > 0)
    .sort((a, b) => unsteadiness(b) - unsteadiness(a) || b.counts.total - a.counts.total)
    .slice(0, most);
}

export function slowest(all: Figures[], most = 5): Figures[] {
  return all
    .filter((figures) => figures.meanLatencyMs !== null)
    .sort((a, b) => (b.meanLatencyMs ?? 0) - (a.meanLatencyMs ?? 0))
    .slice(0, most);
}
