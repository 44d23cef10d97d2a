// The runs that failed last, each with why and when.
import { Table, Text } from '@mantine/core';
import { Block } from './Block';
import { PageLink } from './links';
import { RelativeTime } from './RelativeTime';

export interface RecentFailure {
  key: string;
  runId: string;
  label: string;
  reason: string | undefined;
  at: string;
}

export function RecentFailures({ failures, none }: { failures: RecentFailure[] | undefined; none: string }) {
  return (
    <Block title="Recent failures">
      {failures?.length === 0 && (
        <Text size="sm" c="dimmed">
          {none}
        </Text>
      )}
      {failures !== undefined && failures.length > 0 && (
        <Table aria-label="Recent failures" layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Run</Table.Th>
              <Table.Th>Why</Table.Th>
              <Table.Th w={110}>When</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {failures.map(({ key, runId, label, reason, at }) => (
              <Table.Tr key={key}>
                <Table.Td>
                  <PageLink to="/runs/$runId" params={{ runId }} size="sm">
                    {label}
                  </PageLink>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" lineClamp={2} style={{ overflowWrap: 'anywhere' }}>
                    {reason}
                  </Text>
                </Table.Td>
                <Table.Td>
                  <RelativeTime at={at} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Block>
  );
}
