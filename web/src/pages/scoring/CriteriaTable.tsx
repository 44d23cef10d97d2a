// Every criterion and metric of a scored dataset: its mean with interval, how many it covers, and a histogram.
import { Table, Text } from '@mantine/core';
import { Block } from '../../parts/Block';
import { count, measure, percent, plural } from '../../parts/numbers';
import { RateRange } from '../../parts/PassShare';
import { Tip } from '../../parts/Tip';
import classes from './Scoring.module.css';

interface Spread {
  mean: number | null;
  n: number;
  interval: [number | null, number | null];
  coverage?: number;
  histogram?: number[];
}

/** The part of the summary that is shown; the command line prints the same. */
export interface Summary {
  records: number;
  outcomes: Record<string, number>;
  overallScore: number | null;
  passRate: { estimate: number | null; interval: [number | null, number | null] };
  criteria: Record<string, Spread>;
  metrics: Record<string, Spread>;
}

export function CriteriaTable({ summary: read }: { summary: Record<string, unknown> }) {
  const summary = read as unknown as Summary;
  const { estimate, interval } = summary.passRate;
  const [low, high] = interval;
  const scored = (summary.outcomes.pass ?? 0) + (summary.outcomes.fail ?? 0) > 0;
  return (
    <Block
      title="What it comes to"
      hint={`${plural(summary.records, 'record')}, overall score ${measure(summary.overallScore)}`}
      beside={
        scored && (
          <Text size="sm">
            <b>{percent(estimate)}</b> passed,{' '}
            <Tip term="interval">
              {percent(low)} to {percent(high)}
            </Tip>
          </Text>
        )
      }
    >
      <Table.ScrollContainer minWidth={560} type="native" tabIndex={0} aria-label="Criteria and metrics">
        <Table aria-label="Criteria and metrics">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Criterion or metric</Table.Th>
              <Table.Th ta="right">Mean</Table.Th>
              <Table.Th>95% interval</Table.Th>
              <Table.Th ta="right">
                <Tip term="coverage">Coverage</Tip>
              </Table.Th>
              <Table.Th>From 0 to 1</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {Object.entries(summary.criteria).map(([name, spread]) => (
              <Row key={name} name={name} spread={spread} />
            ))}
            {Object.entries(summary.metrics).map(([name, spread]) => (
              <Row key={`metric ${name}`} name={name} spread={spread} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Block>
  );
}

function Row({ name, spread }: { name: string; spread: Spread }) {
  const [low, high] = spread.interval;
  return (
    <Table.Tr>
      <Table.Td>{name}</Table.Td>
      <Table.Td ta="right">{measure(spread.mean)}</Table.Td>
      <Table.Td miw={160}>
        <Text size="xs" c="dimmed">
          {low === null || high === null ? 'not known' : `${measure(low)} to ${measure(high)}`}
        </Text>
        {spread.histogram && spread.mean !== null && low !== null && high !== null && (
          <RateRange rate={spread.mean} low={low} high={high} />
        )}
      </Table.Td>
      <Table.Td ta="right">
        {spread.coverage === undefined ? plural(spread.n, 'record') : percent(spread.coverage)}
      </Table.Td>
      <Table.Td>{spread.histogram && <Histogram bins={spread.histogram} name={name} />}</Table.Td>
    </Table.Tr>
  );
}

function Histogram({ bins, name }: { bins: number[]; name: string }) {
  const most = Math.max(1, ...bins);
  const label = `${name} in ten steps from 0 to 1: ${bins.map((bin) => count(bin)).join(', ')} records`;
  return (
    <div className={classes.histogram} role="img" aria-label={label} title={label}>
      {bins.map((bin, step) => {
        const key = `${step} ${name}`;
        const height = `${Math.max(bin ? 8 : 3, (100 * bin) / most)}%`;
        return <span key={key} data-empty={bin ? undefined : true} style={{ height }} />;
      })}
    </div>
  );
}
