// Executions in figures: what passed, where they came from, how long they took and what they cost.
import { Table, Text } from '@mantine/core';
import type { Schemas } from '../api/client';
import { origin } from './labels';
import { PageLink } from './links';
import { dollars, duration } from './numbers';
import { OutcomeBadge } from './OutcomeBadge';
import { PassShare } from './PassShare';
import { RelativeTime } from './RelativeTime';
import { Wholeness } from './Wholeness';

type Figures = Schemas['ExecutionFigures'];

export function FiguresTable({ executions }: { executions: Figures[] }) {
  return (
    <Table.ScrollContainer minWidth={680} type="native" tabIndex={0} aria-label="Executions">
      <Table aria-label="Executions">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Eval</Table.Th>
            <Table.Th>Passed</Table.Th>
            <Table.Th>Branch</Table.Th>
            <Table.Th>Commit</Table.Th>
            <Table.Th ta="right">Duration</Table.Th>
            <Table.Th ta="right">Cost</Table.Th>
            <Table.Th>Started</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {executions.map((one) => (
            <Row key={one.id} execution={one} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ execution }: { execution: Figures }) {
  const { branch, commit } = origin(execution.labels);
  return (
    <Table.Tr>
      <Table.Td>
        <PageLink
          to="/executions/$executionId"
          params={{ executionId: execution.id ?? '' }}
          size="sm"
          fw={500}
          display="block"
        >
          {execution.name ?? 'Single run'}
        </PageLink>
        <Wholeness execution={execution} />
      </Table.Td>
      <Table.Td>
        {execution.status === 'completed' ? (
          <PassShare runs={execution.counts} />
        ) : (
          <OutcomeBadge standing={execution.status} />
        )}
      </Table.Td>
      <Table.Td>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {branch ?? '–'}
        </Text>
      </Table.Td>
      <Table.Td>{commit ? <code>{commit}</code> : '–'}</Table.Td>
      <Table.Td ta="right">{duration(execution.durationMs)}</Table.Td>
      <Table.Td ta="right">{dollars(execution.totalCost)}</Table.Td>
      <Table.Td>
        <RelativeTime at={execution.createdAt} />
      </Table.Td>
    </Table.Tr>
  );
}
