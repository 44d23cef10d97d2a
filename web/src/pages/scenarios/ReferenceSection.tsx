// What evaluators may compare with and look at.
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { JsonBox } from '../../forms/JsonField';
import type { ScenarioEditing } from './draft';
import { TextOrJson } from './TextOrJson';

export function ReferenceSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  return (
    <Section title="Reference" hint="For all cases; a case's own ground truth comes first.">
      <TextOrJson
        label="Ground truth"
        description="The reference evaluators compare with: text, or any JSON"
        value={draft.groundTruth}
        error={at(problems, 'groundTruth')}
        onChange={(groundTruth) => change({ groundTruth: groundTruth ?? null })}
      />
      <JsonBox
        id="scenario-context"
        label="Context"
        description="Data evaluators may look at, as a JSON object"
        value={Object.keys(draft.context).length > 0 ? draft.context : undefined}
        error={at(problems, 'context')}
        onChange={(context) => change({ context: (context ?? {}) as Record<string, unknown> })}
      />
    </Section>
  );
}
