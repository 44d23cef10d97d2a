// Inputs whose text cannot be read yet say so here, so that nothing half written is saved.
import { useEffect } from 'react';

const found = new Map<string, string>();

export function unfinished(): string[] {
  return [...found.values()];
}

export function useUnfinished(id: string, problem: string | undefined): void {
  useEffect(() => {
    if (problem) found.set(id, problem);
    return () => {
      found.delete(id);
    };
  }, [id, problem]);
}
