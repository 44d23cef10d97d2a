// When the conversation has succeeded or failed, judged by a model.
import { Radio, Stack, Textarea } from '@mantine/core';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import type { Draft, ScenarioEditing } from './draft';

export function CriteriaSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  return (
    <Section
      title="Success and failure"
      hint="A model judges the conversation by these, beside the evaluators below."
    >
      <Textarea
        label="Success criteria"
        description="When the conversation has succeeded"
        autosize
        minRows={2}
        maxRows={12}
        value={draft.successCriteria ?? ''}
        error={at(problems, 'successCriteria')}
        onChange={(event) => change({ successCriteria: event.currentTarget.value || null })}
      />
      <Textarea
        label="Failure criteria"
        description="When the conversation has failed"
        autosize
        minRows={2}
        maxRows={12}
        value={draft.failureCriteria ?? ''}
        error={at(problems, 'failureCriteria')}
        onChange={(event) => change({ failureCriteria: event.currentTarget.value || null })}
      />
      <Radio.Group
        label="The failure criteria are judged"
        value={draft.failureCriteriaMode}
        error={at(problems, 'failureCriteriaMode')}
        onChange={(mode) => change({ failureCriteriaMode: mode as Draft['failureCriteriaMode'] })}
      >
        <Stack gap={6} mt={6}>
          <Radio value="on_max_messages" label="At the end, if there was no success" />
          <Radio value="every_turn" label="After every turn, and end the conversation when met" />
        </Stack>
      </Radio.Group>
    </Section>
  );
}
