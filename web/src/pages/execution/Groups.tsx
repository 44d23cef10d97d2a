// The runs of an execution by scenario, connector, persona or tag, in the server's figures.
import { NativeSelect, SegmentedControl, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { statsQuery } from '../../api/figures';
import { CountsBar } from '../../parts/CountsBar';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { duration, measure } from '../../parts/numbers';
import { Rate } from '../../parts/Rate';
import { GROUPINGS, type Grouping } from '../../router';

type Counted = Exclude<Grouping, 'evaluator'>;

const WORDS: Record<Counted, string> = {
  scenario: 'Scenario',
  connector: 'Connector',
  persona: 'Persona',
  tag: 'Tag',
};

interface ChoiceProps {
  value?: Grouping;
  onChange: (grouping?: Grouping) => void;
}

const CHOICES = [
  { value: 'none', label: 'Each run' },
  ...GROUPINGS.map((one) => ({ value: one as string, label: `By ${one}` })),
];

export function GroupChoice({ value, onChange }: ChoiceProps) {
  const choose = (next: string) => onChange(GROUPINGS.find((one) => one === next));
  return (
    <>
      <SegmentedControl
        size="xs"
        visibleFrom="sm"
        aria-label="Group runs by"
        data={CHOICES}
        value={value ?? 'none'}
        onChange={choose}
      />
      <NativeSelect
        size="xs"
        hiddenFrom="sm"
        aria-label="Group runs by"
        data={CHOICES}
        value={value ?? 'none'}
        onChange={(event) => choose(event.currentTarget.value)}
      />
    </>
  );
}

export function Groups({ executionId, by }: { executionId: string; by: Counted }) {
  const groups = useQuery(statsQuery(by, { executionId }));
  if (groups.error) return <ErrorState error={groups.error} onRetry={() => void groups.refetch()} />;
  if (!groups.data) return <Loading />;
  return (
    <>
      {by === 'tag' && (
        <Text size="sm" c="dimmed" mb="xs">
          A run of a scenario with several tags counts in each of them.
        </Text>
      )}
      <Table.ScrollContainer minWidth={640} type="native" tabIndex={0} aria-label={`Runs by ${by}`}>
        <Table aria-label={`Runs by ${by}`}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{WORDS[by]}</Table.Th>
              <Table.Th>Passed of scored</Table.Th>
              <Table.Th w="30%">Runs</Table.Th>
              <Table.Th ta="right">Mean latency</Table.Th>
              <Table.Th ta="right">Mean score</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {groups.data.map((group) => (
              <Table.Tr key={group.id ?? group.name}>
                <Table.Td>{group.name ?? <Text size="sm">{`no ${by}`}</Text>}</Table.Td>
                <Table.Td>
                  <Rate rate={group.passRateOfScored} />
                </Table.Td>
                <Table.Td>
                  <CountsBar counts={group.counts} size="sm" />
                </Table.Td>
                <Table.Td ta="right">{duration(group.meanLatencyMs)}</Table.Td>
                <Table.Td ta="right">{measure(group.meanScore)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  );
}
