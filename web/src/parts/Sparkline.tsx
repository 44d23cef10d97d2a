// Rates over time in the space of a word; drawn as plain SVG so that Home needs no chart library.
interface Point {
  at: number;
  rate: number;
}

const WIDTH = 120;
const HEIGHT = 34;
const EDGE = 3;

export function Sparkline({ points, label }: { points: Point[]; label: string }) {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return null;
  const span = last.at - first.at || 1;
  const x = (at: number) => EDGE + ((at - first.at) / span) * (WIDTH - 2 * EDGE);
  const y = (rate: number) => HEIGHT - EDGE - rate * (HEIGHT - 2 * EDGE);
  const spots = points.map((point) => [points.length > 1 ? x(point.at) : WIDTH / 2, y(point.rate)] as const);
  const path = spots.map(([left, top], place) => `${place ? 'L' : 'M'}${left.toFixed(1)} ${top.toFixed(1)}`);
  const [left, top] = spots.at(-1) ?? [0, 0];
  return (
    <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <line
        x1={EDGE}
        x2={WIDTH - EDGE}
        y1={y(1)}
        y2={y(1)}
        stroke="var(--mantine-color-default-border)"
        strokeDasharray="2 3"
      />
      <path
        d={path.join('')}
        fill="none"
        stroke="var(--mantine-color-indigo-5)"
        strokeWidth={1.75}
        strokeLinejoin="round"
        strokeLinecap="round"
      />
      <circle cx={left} cy={top} r={2.75} fill="var(--mantine-color-indigo-6)" />
    </svg>
  );
}
