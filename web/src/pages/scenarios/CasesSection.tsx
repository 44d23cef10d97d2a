// Cases: rows of values for the {{placeholders}}, written here or kept in a file.
import { SegmentedControl, Text, TextInput } from '@mantine/core';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { CasesTable } from './CasesTable';
import { placeholders, type ScenarioEditing } from './draft';

export function CasesSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  const { cases } = draft;
  const inFile = typeof cases === 'string';
  return (
    <Section
      title="Cases"
      hint="The scenario runs once with each. Without cases it runs once, without values."
      action={
        <SegmentedControl
          size="xs"
          aria-label="Where the cases are"
          data={[
            { value: 'table', label: 'Table' },
            { value: 'file', label: 'File' },
          ]}
          value={inFile ? 'file' : 'table'}
          onChange={(where) => change({ cases: where === 'file' ? '' : [] })}
        />
      }
    >
      {inFile ? (
        <TextInput
          label="File of cases"
          description="A .csv or .jsonl file inside the project folder"
          placeholder="cases/orders.csv"
          value={cases}
          error={at(problems, 'cases')}
          onChange={(event) => change({ cases: event.currentTarget.value })}
        />
      ) : (
        <>
          <CasesTable
            cases={cases}
            placeholders={placeholders(draft)}
            problems={problems}
            onChange={(next) => change({ cases: next })}
          />
          {at(problems, 'cases') && (
            <Text size="sm" c="red">
              {at(problems, 'cases')}
            </Text>
          )}
        </>
      )}
    </Section>
  );
}
