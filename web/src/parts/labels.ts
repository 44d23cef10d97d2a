// The labels of an execution in words; a commit by its first characters.
import type { Schemas } from '../api/client';

const COMMIT = /^[0-9a-f]{40}$/;

/** Branch and commit as they are shown; a commit by its first characters. */
export function origin(labels: Record<string, unknown>): { branch: string | null; commit: string | null } {
  const { branch, commit } = labels;
  return {
    branch: typeof branch === 'string' ? branch : null,
    commit: typeof commit === 'string' ? commit.slice(0, 8) : null,
  };
}

/** Branch and commit in one line; nothing where neither is known. */
export function originText(labels: Record<string, unknown>): string {
  const { branch, commit } = origin(labels);
  return [branch, commit].filter(Boolean).join(' · ');
}

export function labelTexts({ labels }: Schemas['Execution']): string[] {
  return Object.entries(labels)
    .filter(([name]) => name !== 'ciUrl')
    .map(([name, value]) => {
      const text = String(value);
      return `${name} ${COMMIT.test(text) ? text.slice(0, 10) : text}`;
    });
}
