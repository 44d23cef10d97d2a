// The sections of the editor, to go to one at once.
import { Anchor, Group } from '@mantine/core';

const SECTIONS = [
  'What is tested',
  'Conversation',
  'Cases',
  'Personas and limits',
  'Success and failure',
  'Evaluators',
  'Weighted criteria',
  'Reference',
];

export function SectionIndex() {
  return (
    <Group component="nav" gap="md" aria-label="Sections">
      {SECTIONS.map((title) => (
        <Anchor key={title} component="button" type="button" size="sm" onClick={() => show(title)}>
          {title}
        </Anchor>
      ))}
    </Group>
  );
}

function show(title: string) {
  const heads = [...document.querySelectorAll('main section h2')];
  const head = heads.find((one) => one.textContent?.startsWith(title));
  head?.closest('section')?.scrollIntoView({ block: 'start' });
}
