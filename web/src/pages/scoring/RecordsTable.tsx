// The records of a results file with their verdicts and the reasons for them.
import { SegmentedControl, Table, Text } from '@mantine/core';
import type { Schemas } from '../../api/client';
import { Block } from '../../parts/Block';
import { measure, plural } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';

const OUTCOMES = [
  { value: '', label: 'All' },
  { value: 'fail', label: 'Fail' },
  { value: 'error', label: 'Error' },
  { value: 'pass', label: 'Pass' },
];

type Props = { file: Schemas['ScoredFile']; outcome: string; onOutcome: (outcome: string) => void };

export function RecordsTable({ file, outcome, onOutcome }: Props) {
  return (
    <Block
      title="Records"
      beside={
        <SegmentedControl
          aria-label="Which records"
          size="xs"
          data={OUTCOMES}
          value={outcome}
          onChange={onOutcome}
        />
      }
    >
      {file.records.length === 0 && (
        <Text size="sm" c="dimmed">
          No record came to this.
        </Text>
      )}
      {file.records.length > 0 && (
        <Table.ScrollContainer minWidth={320} type="native" tabIndex={0} aria-label="Records">
          <Table aria-label="Records">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Record</Table.Th>
                <Table.Th>Result</Table.Th>
                <Table.Th ta="right" visibleFrom="sm">
                  Score
                </Table.Th>
                <Table.Th>Why</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {file.records.map((record, place) => {
                const key = `${place} ${record.recordId}`;
                return <Row key={key} record={record} />;
              })}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {file.moreRecords > 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {plural(file.moreRecords, 'more record')} in the file.
        </Text>
      )}
    </Block>
  );
}

function Row({ record }: { record: Schemas['ScoredRecord'] }) {
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>{record.recordId}</Table.Td>
      <Table.Td>
        <OutcomeBadge standing={record.outcome} />
      </Table.Td>
      <Table.Td ta="right" visibleFrom="sm">
        {measure(record.overallScore)}
      </Table.Td>
      <Table.Td>
        {record.reasons.map((reason) => (
          <Text
            key={`${reason.criterion} ${reason.evaluator}`}
            size="sm"
            style={{ overflowWrap: 'anywhere' }}
          >
            <Text span size="sm" c="dimmed">
              {reason.criterion ?? reason.evaluator} {measure(reason.value)}:
            </Text>{' '}
            {reason.error && 'error: '}
            {reason.reason}
          </Text>
        ))}
        {record.reasons.length === 0 && <Text size="sm">{record.reason}</Text>}
      </Table.Td>
    </Table.Tr>
  );
}
