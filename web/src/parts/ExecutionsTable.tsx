// Executions with their outcomes: the rows of the list of all, and the table of one eval.
import { Box, Table, Text } from '@mantine/core';
import type { Schemas } from '../api/client';
import type { ListColumn } from '../editing/Listing';
import { CountsBar } from './CountsBar';
import { labelTexts } from './labels';
import { PageLink } from './links';
import { OutcomeBadge } from './OutcomeBadge';
import { standingOfExecution } from './outcome';
import { RelativeTime } from './RelativeTime';
import { Wholeness } from './Wholeness';

type Execution = Schemas['Execution'];

/** Inside an eval its name need not be repeated. */
export function executionColumns(ofOneEval: boolean): ListColumn[] {
  return [
    { head: ofOneEval ? 'Started' : 'Eval' },
    { head: 'Result' },
    { head: 'Runs', width: '40%' },
    { head: ofOneEval ? 'Labels' : 'Started', visibleFrom: 'sm' },
  ];
}

export function ExecutionsTable({ executions }: { executions: Execution[] }) {
  return (
    <Table.ScrollContainer minWidth={340} type="native" tabIndex={0} aria-label="Executions">
      <Table aria-label="Executions">
        <Table.Thead>
          <Table.Tr>
            {executionColumns(true).map(({ head, width, visibleFrom }) => (
              <Table.Th key={head} w={width} visibleFrom={visibleFrom}>
                {head}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {executions.map((execution) => (
            <Table.Tr key={execution.id}>
              <ExecutionCells execution={execution} ofOneEval />
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

export function ExecutionCells({ execution, ofOneEval }: { execution: Execution; ofOneEval?: boolean }) {
  return (
    <>
      <Table.Td>
        <PageLink
          to="/executions/$executionId"
          params={{ executionId: execution.id }}
          fw={500}
          display="block"
        >
          {ofOneEval ? (
            <RelativeTime at={execution.createdAt} c="inherit" />
          ) : (
            (execution.evalName ?? 'Single run')
          )}
        </PageLink>
        {!ofOneEval && (
          <Box hiddenFrom="sm">
            <RelativeTime at={execution.createdAt} size="xs" />
          </Box>
        )}
      </Table.Td>
      <Table.Td>
        <OutcomeBadge standing={standingOfExecution(execution)} />
        <Wholeness execution={execution} />
      </Table.Td>
      <Table.Td>
        <CountsBar counts={execution.counts} size="sm" />
      </Table.Td>
      <Table.Td visibleFrom="sm">
        {!ofOneEval && <RelativeTime at={execution.createdAt} />}
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {labelsOf(execution)}
        </Text>
      </Table.Td>
    </>
  );
}

function labelsOf(execution: Execution): string {
  return [execution.trigger, ...labelTexts(execution)].filter(Boolean).join(' · ');
}
