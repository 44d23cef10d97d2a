// The labels of an execution in words; a commit by its first characters.
import type { Schemas } from '../api/client';

const COMMIT = /^[0-9a-f]{40}$/;

export function labelTexts({ labels }: Schemas['Execution']): string[] {
  return Object.entries(labels)
    .filter(([name]) => name !== 'ciUrl')
    .map(([name, value]) => {
      const text = String(value);
      return `${name} ${COMMIT.test(text) ? text.slice(0, 10) : text}`;
    });
}
