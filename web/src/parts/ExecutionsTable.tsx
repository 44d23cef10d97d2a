// Executions with their outcomes; used by the dashboard, an eval and the list of all.
import { Box, Table, Text } from '@mantine/core';
import type { Schemas } from '../api/client';
import { CountsBar } from './CountsBar';
import { labelTexts } from './labels';
import { PageLink } from './links';
import { OutcomeBadge } from './OutcomeBadge';
import { standingOfExecution } from './outcome';
import { RelativeTime } from './RelativeTime';
import { Wholeness } from './Wholeness';

interface Props {
  executions: Schemas['Execution'][];
  /** Inside an eval its name need not be repeated */
  ofOneEval?: boolean;
}

export function ExecutionsTable({ executions, ofOneEval = false }: Props) {
  return (
    <Table.ScrollContainer minWidth={340} type="native" tabIndex={0} aria-label="Executions">
      <Table aria-label="Executions">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{ofOneEval ? 'Started' : 'Eval'}</Table.Th>
            <Table.Th>Result</Table.Th>
            <Table.Th w="40%">Runs</Table.Th>
            <Table.Th visibleFrom="sm">{ofOneEval ? 'Labels' : 'Started'}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {executions.map((execution) => (
            <Table.Tr key={execution.id}>
              <Table.Td>
                <PageLink
                  to="/executions/$executionId"
                  params={{ executionId: execution.id }}
                  size="sm"
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
                <OutcomeBadge standing={standingOfExecution(execution)} size="sm" />
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
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function labelsOf(execution: Schemas['Execution']): string {
  return [execution.trigger, ...labelTexts(execution)].filter(Boolean).join(' · ');
}
