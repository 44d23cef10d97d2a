// Charts, loaded when the first one is shown; their place is kept meanwhile.
import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { Point } from './points';

const Rates = lazy(() => import('./RateChart'));
const Tokens = lazy(() => import('./TokensChart'));

const HEIGHT = 220;

interface RateProps {
  points: Point[];
  of?: string;
  title?: string;
  unit?: string;
}

export function RateChart({ points, ...more }: RateProps) {
  return (
    <Suspense fallback={<Skeleton h={HEIGHT} />}>
      <Rates points={points} height={HEIGHT} {...more} />
    </Suspense>
  );
}

export function TokensChart({ points }: { points: Point[] }) {
  return (
    <Suspense fallback={<Skeleton h={HEIGHT} />}>
      <Tokens points={points} height={HEIGHT} />
    </Suspense>
  );
}
