// Cases: rows of values for the {{placeholders}}, written here or kept in a file.
import { SegmentedControl, Text, TextInput } from '@mantine/core';
import { useRef } from 'react';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import { plural } from '../../parts/numbers';
import { CasesImport } from './CasesImport';
import { CasesTable } from './CasesTable';
import { type Case, placeholders, type ScenarioEditing } from './draft';

export function CasesSection({ editor }: { editor: ScenarioEditing }) {
  const { draft, change, problems } = editor;
  const { cases } = draft;
  const inFile = typeof cases === 'string';
  // What was written on the one side is there again after a look at the other.
  const rows = useRef<Case[]>([]);
  const file = useRef('');
  if (inFile) file.current = cases;
  else rows.current = cases;
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
          onChange={(where) => change({ cases: where === 'file' ? file.current : rows.current })}
        />
      }
    >
      {inFile && rows.current.length > 0 && (
        <Text size="sm" c="dimmed">
          The table ({plural(rows.current.length, 'row')}) is kept until you leave this page. Saving now
          stores the name of the file instead.
        </Text>
      )}
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
            actions={<CasesImport onRead={(more) => change({ cases: [...cases, ...more] })} />}
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
