// Scenarios by executions: every cell says by icon, figures and colour what came of it.
import { Group, Table, Text, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { matrixQuery } from '../../api/queries';
import { countsText } from '../../parts/CountsBar';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { ago } from '../../parts/numbers';
import { OUTCOME_STYLES } from '../../parts/OutcomeBadge';
import classes from './Evals.module.css';

export function Matrix({ evalId }: { evalId: string }) {
  const matrix = useQuery(matrixQuery(evalId, 12));
  if (matrix.error) return <ErrorState error={matrix.error} onRetry={() => void matrix.refetch()} />;
  if (!matrix.data) return <Loading />;
  // Oldest on the left, as time is read.
  const executions = [...matrix.data.executions].reverse();
  return (
    <Table.ScrollContainer minWidth={0} type="native" tabIndex={0} aria-label="Scenarios by executions">
      <Table aria-label="Scenarios by executions" withColumnBorders w="auto">
        <Table.Thead>
          <Table.Tr>
            <Table.Th className={classes.corner}>Scenario</Table.Th>
            {executions.map((execution) => (
              <Table.Th key={execution.id} ta="center">
                <PageLink to="/executions/$executionId" params={{ executionId: execution.id }} size="xs">
                  <time dateTime={execution.createdAt} title={new Date(execution.createdAt).toLocaleString()}>
                    {ago(execution.createdAt)}
                  </time>
                </PageLink>
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {matrix.data.rows.map((row) => (
            <Table.Tr key={row.scenarioId ?? row.scenarioName}>
              <Table.Th scope="row" className={classes.corner} fw={400}>
                {row.scenarioName}
              </Table.Th>
              {executions.map((execution) => (
                <Table.Td key={execution.id} ta="center" pos="relative">
                  <CellView
                    cell={row.cells.find((cell) => cell.executionId === execution.id)}
                    scenarioId={row.scenarioId}
                  />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function CellView({ cell, scenarioId }: { cell?: Schemas['Cell']; scenarioId: string | null }) {
  if (!cell) {
    return (
      <Text span c="dimmed" aria-label="not run">
        –
      </Text>
    );
  }
  const { icon: OutcomeIcon, color, word } = OUTCOME_STYLES[cell.counts.standing];
  return (
    <PageLink
      to="/executions/$executionId"
      params={{ executionId: cell.executionId }}
      search={{ scenario: scenarioId ?? undefined }}
      c="inherit"
      size="xs"
      title={countsText(cell.counts)}
    >
      <Group gap={4} justify="center" wrap="nowrap" component="span">
        <OutcomeIcon size={16} color={`var(--mantine-color-${color}-6)`} aria-hidden />
        {cell.counts.total > 1 && `${cell.counts.passed}/${cell.counts.total - cell.counts.unasserted}`}
        <VisuallyHidden>{word}</VisuallyHidden>
      </Group>
    </PageLink>
  );
}
