// Scenarios by executions: every cell says by icon, figures and colour what came of it.
import { ActionIcon, Group, Table, Text, VisuallyHidden } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { matrixQuery } from '../../api/figures';
import { countsText } from '../../parts/CountsBar';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { origin } from '../../parts/labels';
import { PageLink } from '../../parts/links';
import { ago, exactTime } from '../../parts/numbers';
import { OUTCOME_STYLES } from '../../parts/OutcomeBadge';
import { ShareBar } from '../../parts/PassShare';
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
                  <time dateTime={execution.createdAt} title={exactTime(execution.createdAt)}>
                    {origin(execution.labels).commit ?? ago(execution.createdAt)}
                  </time>
                </PageLink>
                {origin(execution.labels).commit && (
                  <Text size="xs" c="dimmed" fw={400}>
                    {ago(execution.createdAt)}
                  </Text>
                )}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {matrix.data.rows.map((row) => (
            <ScenarioRows key={row.scenarioId ?? row.scenarioName} row={row} executions={executions} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

type Row = Schemas['MatrixRow'];
type RowsProps = { row: Row; executions: Schemas['Execution'][] };

/** A scenario, and below it each of its connectors where that is asked for. */
function ScenarioRows({ row, executions }: RowsProps) {
  const [opened, setOpened] = useState(false);
  const several = row.connectors.length > 1;
  return (
    <>
      <Table.Tr>
        <Table.Th scope="row" className={classes.corner} fw={400}>
          <Group gap={4} wrap="nowrap">
            {several && (
              <ActionIcon
                variant="subtle"
                color="gray"
                size="sm"
                aria-expanded={opened}
                aria-label={`Connectors of ${row.scenarioName}`}
                onClick={() => setOpened(!opened)}
              >
                {opened ? (
                  <IconChevronDown size={14} aria-hidden />
                ) : (
                  <IconChevronRight size={14} aria-hidden />
                )}
              </ActionIcon>
            )}
            <Text size="sm">{row.scenarioName}</Text>
          </Group>
        </Table.Th>
        <Cells cells={row.cells} scenarioId={row.scenarioId} executions={executions} />
      </Table.Tr>
      {opened &&
        row.connectors.map((one) => (
          <Table.Tr key={one.connectorId ?? one.connectorName}>
            <Table.Th scope="row" className={classes.corner} fw={400}>
              <Text size="xs" c="dimmed" pl={26}>
                {one.connectorName}
              </Text>
            </Table.Th>
            <Cells cells={one.cells} scenarioId={row.scenarioId} executions={executions} />
          </Table.Tr>
        ))}
    </>
  );
}

type CellsProps = { cells: Schemas['Cell'][]; scenarioId: string | null; executions: Schemas['Execution'][] };

function Cells({ cells, scenarioId, executions }: CellsProps) {
  return executions.map((execution) => (
    <Table.Td key={execution.id} ta="center" pos="relative">
      <CellView cell={cells.find((cell) => cell.executionId === execution.id)} scenarioId={scenarioId} />
    </Table.Td>
  ));
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
      {cell.counts.total > 1 && <ShareBar runs={cell.counts} width={44} />}
    </PageLink>
  );
}
