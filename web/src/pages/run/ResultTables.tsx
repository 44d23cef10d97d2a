// What the evaluators found: assertions that decide, metrics that measure, each with its details folded.
import { ActionIcon, Code, Group, Paper, Table, Text, Title } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { Fragment, useEffect, useRef } from 'react';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { Folded } from './Folded';
import { JudgeQuotes } from './JudgeQuotes';
import classes from './Run.module.css';
import {
  assertionsOf,
  detailsOf,
  keyOf,
  metricsOf,
  quotesOf,
  type Result,
  scoreText,
  standingOfResult,
  titleOf,
  valueText,
  whenText,
} from './results';

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
            <OutcomeBadge standing={standingOfResult(result)} size="sm" />
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
            {result.error ? <OutcomeBadge standing="error" size="sm" /> : valueText(result)}
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
      <Table.ScrollContainer minWidth={380} type="native">
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
                <Text size="xs" c="dimmed">
                  {whenText(result)}
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
            <Text size="sm" className={classes.reason} mb="xs">
              {result.reason}
            </Text>
            <JudgeQuotes quotes={quotesOf(result)} />
            <Code block className={classes.long} data-testid="metadata">
              {JSON.stringify(detailsOf(result), null, 2)}
            </Code>
            {result.traceback && <Folded title="Traceback" text={result.traceback} />}
          </Table.Td>
        </Table.Tr>
      )}
    </Fragment>
  );
}
