// What the evaluators found: assertions that decide, metrics that measure, each with its details folded.
import { ActionIcon, Group, Paper, Table, Text, Title } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { getRouteApi } from '@tanstack/react-router';
import { Fragment, useEffect, useRef } from 'react';
import { PageLink } from '../../parts/links';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { ResultDetails } from './ResultDetails';
import classes from './Run.module.css';
import {
  assertionsOf,
  keyOf,
  metricsOf,
  type Result,
  scoreText,
  standingOfResult,
  titleOf,
  valueText,
  whenText,
} from './results';

const route = getRouteApi('/runs/$runId');

interface Props {
  results: Result[];
  opened: ReadonlySet<string>;
  onToggle: (result: Result) => void;
}

export function AssertionsTable({ results, opened, onToggle }: Props) {
  const assertions = assertionsOf(results);
  if (assertions.length === 0) return null;
  return (
    <ResultTable title="Assertions" columns={['Evaluator', 'Result', 'Score', 'Reason']}>
      {assertions.map((result) => (
        <ResultRow key={keyOf(result)} result={result} opened={opened.has(keyOf(result))} onToggle={onToggle}>
          <Table.Td>
            <OutcomeBadge standing={standingOfResult(result)} />
          </Table.Td>
          <Table.Td className={classes.figures}>{scoreText(result)}</Table.Td>
        </ResultRow>
      ))}
    </ResultTable>
  );
}

export function MetricsTable({ results, opened, onToggle }: Props) {
  const metrics = metricsOf(results);
  if (metrics.length === 0) return null;
  return (
    <ResultTable title="Metrics" columns={['Metric', 'Value', 'Reason']}>
      {metrics.map((result) => (
        <ResultRow key={keyOf(result)} result={result} opened={opened.has(keyOf(result))} onToggle={onToggle}>
          <Table.Td className={classes.figures}>
            {result.error ? <OutcomeBadge standing="error" /> : valueText(result)}
          </Table.Td>
        </ResultRow>
      ))}
    </ResultTable>
  );
}

function ResultTable({
  title,
  columns,
  children,
}: {
  title: string;
  columns: string[];
  children: React.ReactNode;
}) {
  return (
    <Paper withBorder p="xs">
      <Title order={2} size="h4" mb={4}>
        {title}
      </Title>
      <Table.ScrollContainer minWidth={340} type="native">
        <Table verticalSpacing={4} horizontalSpacing={6} aria-label={title}>
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <Table.Th key={column}>{column}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>{children}</Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  );
}

interface RowProps {
  result: Result;
  opened: boolean;
  onToggle: (result: Result) => void;
  children: React.ReactNode;
}

function ResultRow({ result, opened, onToggle, children }: RowProps) {
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (opened) row.current?.scrollIntoView({ block: 'nearest' });
  }, [opened]);
  const name = titleOf(result);
  const Chevron = opened ? IconChevronDown : IconChevronRight;
  return (
    <Fragment>
      <Table.Tr ref={row}>
        <Table.Td>
          <Group gap={4} wrap="nowrap" align="center">
            <ActionIcon
              size="sm"
              variant="subtle"
              color="gray"
              aria-expanded={opened}
              aria-label={`Details of ${name}`}
              onClick={() => onToggle(result)}
            >
              <Chevron size={14} aria-hidden />
            </ActionIcon>
            <div>
              <Text size="sm" miw={90}>
                {name}
              </Text>
              {result.kind === 'assertion' && (
                <Text size="xs" c="dimmed" component="div">
                  {whenText(result)} · <TurnLink result={result} />
                </Text>
              )}
            </div>
          </Group>
        </Table.Td>
        {children}
        <Table.Td>
          <Text size="sm" className={classes.reason} lineClamp={3}>
            {result.reason}
          </Text>
        </Table.Td>
      </Table.Tr>
      {opened && (
        <Table.Tr>
          <Table.Td colSpan={4}>
            <ResultDetails result={result} />
          </Table.Td>
        </Table.Tr>
      )}
    </Fragment>
  );
}

/** To the turn that decided: what was said there is the reason. */
export function TurnLink({ result }: { result: Result }) {
  const { runId } = route.useParams();
  if (result.turn === undefined || result.turn === null) return null;
  return (
    <PageLink
      to="/runs/$runId"
      params={{ runId }}
      search={(before) => ({ ...before, turn: result.turn ?? undefined })}
      replace
      resetScroll={false}
      inherit
      underline="always"
    >
      turn {result.turn}
    </PageLink>
  );
}
