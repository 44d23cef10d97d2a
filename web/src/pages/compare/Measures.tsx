// Every number that two sides can be compared by, with its difference and how sure that is.
import { Table, Text } from '@mantine/core';
import type { Schemas } from '../../api/client';
import { Block } from '../../parts/Block';
import { type Better, Delta, end } from '../../parts/Delta';
import { chance, count, dollars, duration, measure, percent } from '../../parts/numbers';
import { Tip } from '../../parts/Tip';
import classes from './Compare.module.css';

type Measure = Schemas['MeasureDelta'];

interface Kind {
  title: string;
  better: Better;
  share?: boolean;
  format: (value: number | null) => string;
}

const tokens = (value: number | null) => count(value === null ? null : Math.round(value));
/** Differences of less than a millisecond are told too. */
const latency = (ms: number | null) => (ms !== null && ms < 10 ? `${measure(ms)} ms` : duration(ms));
const KINDS: Record<Measure['kind'], Kind> = {
  evaluator: { title: 'Passed by evaluator', better: 'more', share: true, format: percent },
  criterion: { title: 'Criterion', better: 'more', format: measure },
  score: { title: 'Score', better: 'more', format: measure },
  metric: { title: 'Metric', better: 'unknown', format: measure },
  latency: { title: 'Latency per run', better: 'less', format: latency },
  tokens: { title: 'Tokens per run', better: 'less', format: tokens },
  cost: { title: 'Cost per run', better: 'less', format: dollars },
};

export function Measures({ measures }: { measures: Measure[] }) {
  if (measures.length === 0) return null;
  return (
    <Block
      title="Measures"
      hint={
        <>
          Means over the subjects that both sides have, with a <Tip term="interval">95% interval</Tip> of the
          difference
        </>
      }
    >
      <Table.ScrollContainer minWidth={640} type="native" tabIndex={0} aria-label="Measures">
        <Table aria-label="Measures" className={classes.measures}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Measure</Table.Th>
              <Table.Th ta="right">Base</Table.Th>
              <Table.Th ta="right">Candidate</Table.Th>
              <Table.Th ta="right">Difference</Table.Th>
              <Table.Th>95% interval</Table.Th>
              <Table.Th ta="right">
                <Tip term="chance">Chance alone</Tip>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {measures.filter(worthShowing).map((one) => (
              <Row key={`${one.kind} ${one.name}`} one={one} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Block>
  );
}

/** A role that cost nothing on either side was not asked. */
function worthShowing({ kind, base, candidate }: Measure): boolean {
  return kind !== 'cost' || Boolean(base) || Boolean(candidate);
}

function Row({ one }: { one: Measure }) {
  const kind = KINDS[one.kind];
  const p = one.adjustedP ?? one.p;
  const sure = p < 0.05;
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={500} span>
          {one.kind === 'latency' ? 'latency' : one.name}
        </Text>{' '}
        <Text span size="xs" c="dimmed">
          {kind.title}
        </Text>
      </Table.Td>
      <Table.Td ta="right">{kind.format(one.base)}</Table.Td>
      <Table.Td ta="right">{kind.format(one.candidate)}</Table.Td>
      <Table.Td ta="right">
        <Delta
          difference={one.difference}
          low={one.low}
          high={one.high}
          share={kind.share}
          better={sure ? kind.better : 'unknown'}
          format={kind.format}
        />
      </Table.Td>
      <Table.Td>
        <Text size="sm" c="dimmed">
          {one.low === null && one.high === null
            ? 'not known'
            : `${end(one.low, kind.share, kind.format)} to ${end(one.high, kind.share, kind.format)}`}
        </Text>
      </Table.Td>
      <Table.Td ta="right">{chance(p)}</Table.Td>
    </Table.Tr>
  );
}
