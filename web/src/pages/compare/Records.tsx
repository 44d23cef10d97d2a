// One record in two results files: its verdict and the reasons for it, side by side.
import { Group, SimpleGrid, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { scoredFileQuery } from '../../api/scoring';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { measure } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { resultsName } from '../../parts/resultsName';
import type { Compared, Comparison } from './rows';

export function Records({ comparison, row }: { comparison: Comparison; row: Compared }) {
  const record = row.subject.scenarioName;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      <Side title="Base" path={comparison.base.id} record={record} />
      <Side title="Candidate" path={comparison.candidate.id} record={record} />
    </SimpleGrid>
  );
}

function Side({ title, path, record }: { title: string; path: string; record: string }) {
  const file = useQuery(scoredFileQuery({ path, record }));
  if (file.error) return <ErrorState error={file.error} onRetry={() => void file.refetch()} />;
  if (!file.data) return <Loading rows={4} />;
  return (
    <Block title={title} hint={resultsName(path)}>
      {file.data.records.length === 0 && (
        <Text size="sm" c="dimmed">
          It is not in this file.
        </Text>
      )}
      {file.data.records.map((one, place) => {
        const key = `${place} ${one.recordId}`;
        return <Scored key={key} record={one} />;
      })}
    </Block>
  );
}

function Scored({ record }: { record: Schemas['ScoredRecord'] }) {
  return (
    <>
      <Group gap="xs" mb="xs">
        <OutcomeBadge standing={record.outcome} />
        <Text size="sm">score {measure(record.overallScore)}</Text>
      </Group>
      <Table aria-label="Reasons">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Criterion</Table.Th>
            <Table.Th ta="right">Score</Table.Th>
            <Table.Th>Why</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {record.reasons.map((reason) => (
            <Table.Tr key={`${reason.criterion} ${reason.evaluator}`}>
              <Table.Td>{reason.criterion ?? reason.evaluator}</Table.Td>
              <Table.Td ta="right">{measure(reason.value)}</Table.Td>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>
                {reason.error && 'error: '}
                {reason.reason || '–'}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}
