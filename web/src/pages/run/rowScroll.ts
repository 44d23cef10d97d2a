// Scrolling to a row whose place is not known yet: rows get their real height only when they are in the page.
import type { Virtualizer } from '@tanstack/react-virtual';

const STEADY_FRAMES = 6;
const LONGEST = 3_000;
const TOLERANCE = 2;

/** Scroll to a row and stay on it until it has come to rest, or the reader scrolls. Returns how to stop. */
export function scrollToRow(list: Virtualizer<Window, Element>, index: number): () => void {
  const start = performance.now();
  let steady = 0;
  let frame = 0;

  const stop = () => {
    cancelAnimationFrame(frame);
    window.removeEventListener('wheel', stop);
    window.removeEventListener('touchmove', stop);
  };
  const look = () => {
    const place = list.getOffsetForIndex(index, 'start')?.[0];
    if (place === undefined || performance.now() - start > LONGEST) return stop();
    steady = Math.abs(window.scrollY - place) <= TOLERANCE ? steady + 1 : 0;
    if (steady >= STEADY_FRAMES) return stop();
    if (steady === 0) window.scrollTo({ top: place, behavior: 'instant' });
    frame = requestAnimationFrame(look);
  };

  window.addEventListener('wheel', stop, { passive: true });
  window.addEventListener('touchmove', stop, { passive: true });
  look();
  return stop;
}
