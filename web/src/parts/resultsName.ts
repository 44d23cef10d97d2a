/** A results file as people tell it from others: one of the server's scorings by its dataset and time. */
export function resultsName(path: string): string {
  return /^data\/scorings\/([^/]+)\/results\.jsonl$/.exec(path)?.[1] ?? path;
}
