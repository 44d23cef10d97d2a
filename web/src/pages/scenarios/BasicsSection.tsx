// What a scenario is called, and what its simulated user does.
import { TagsInput, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { scenariosQuery } from '../../api/definitions';
import { NameField } from '../../editing/NameFields';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import type { ScenarioEditing } from './draft';

export function BasicsSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  const { data } = useQuery(scenariosQuery);
  const tags = [...new Set(data?.flatMap((one) => one.tags) ?? [])].sort();
  return (
    <Section title="What is tested">
      <NameField
        hint="What lists and results call it; every scenario has another"
        draft={draft}
        change={change}
        problems={problems}
      />
      <TagsInput
        label="Tags"
        data={tags}
        value={draft.tags}
        error={at(problems, 'tags')}
        onChange={(chosen) => change({ tags: chosen })}
        clearable
        clearButtonProps={{ 'aria-label': 'Remove all tags' }}
      />
      <Textarea
        label="Instructions"
        description="What the simulated user is doing here. {{name}} is filled in from the case."
        autosize
        minRows={3}
        maxRows={16}
        value={draft.instructions ?? ''}
        error={at(problems, 'instructions')}
        onChange={(event) => change({ instructions: event.currentTarget.value || null })}
      />
    </Section>
  );
}
