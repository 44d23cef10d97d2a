// Inputs whose text cannot be read yet say so here, so that nothing half written is saved.
import { useEffect } from 'react';

const problems = new Map<string, string>();

export function inputProblems(): string[] {
  return [...problems.values()];
}

export function useInputProblem(id: string, problem: string | undefined): void {
  useEffect(() => {
    if (problem) problems.set(id, problem);
    return () => {
      problems.delete(id);
    };
  }, [id, problem]);
}
