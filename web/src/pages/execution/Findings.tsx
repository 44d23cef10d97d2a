// What an execution came to: whether it reached what is required, what each role used, how its runs are spread.
import { Group, SimpleGrid, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { conclusionQuery, distributionsQuery } from '../../api/figures';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { Histogram } from '../../parts/Histogram';
import { compact, count, dollars, duration, measure, plural } from '../../parts/numbers';
import { StandingBadge } from '../../parts/StandingBadge';
import { Tip } from '../../parts/Tip';
import type { Summary } from './runs';

type Execution = Schemas['Execution'];

export function Findings({ execution, summary }: { execution: Execution; summary: Summary }) {
  if (!execution.completedAt) return null;
  return (
    <Stack gap="sm" mb="sm">
      {execution.requirements.length > 0 && <Requirements execution={execution} />}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        <Spread execution={execution} />
        <Used usage={summary.usage} />
      </SimpleGrid>
    </Stack>
  );
}

const ROW = 38;

function Requirements({ execution }: { execution: Execution }) {
  const conclusion = useQuery(conclusionQuery(execution));
  if (conclusion.error)
    return <ErrorState error={conclusion.error} onRetry={() => void conclusion.refetch()} />;
  const { data } = conclusion;
  return (
    <Block
      title="Requirements"
      term="requirement"
      hint={data?.notes.join(' · ')}
      beside={data ? <StandingBadge standing={data.standing} /> : <Skeleton w={70} h={20} />}
    >
      {data ? (
        <Table aria-label="Requirements">
          <Table.Tbody>
            {data.requirements.map((one) => (
              <Table.Tr key={one.requirement}>
                <Table.Td w={110}>
                  <StandingBadge standing={one.standing} />
                </Table.Td>
                <Table.Td>
                  <Text span size="sm" fw={600} mr="sm" title={one.requirement}>
                    {one.sentence}
                  </Text>{' '}
                  <Text span size="sm" c="dimmed">
                    {one.evidence}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      ) : (
        <Skeleton h={execution.requirements.length * ROW} />
      )}
    </Block>
  );
}

const SPREAD_HEIGHT = 120;

function Spread({ execution }: { execution: Execution }) {
  const spread = useQuery(distributionsQuery(execution));
  if (spread.error) return <ErrorState error={spread.error} onRetry={() => void spread.refetch()} />;
  const { data } = spread;
  const nothing = data && data.scores.length === 0 && data.latencies.length === 0;
  return (
    <Block title="Scores and latencies" hint="How many runs lie where; latencies on a logarithmic scale">
      {!data && <Skeleton h={SPREAD_HEIGHT} />}
      {nothing && (
        <Text size="sm" c="dimmed" h={SPREAD_HEIGHT}>
          No run has a score or a latency.
        </Text>
      )}
      {data && !nothing && (
        <SimpleGrid cols={{ base: 1, xs: 2 }} mih={SPREAD_HEIGHT}>
          <Histogram title="Score" bins={data.scores} text={measure} />
          <Histogram title="Latency" bins={data.latencies} text={duration} />
        </SimpleGrid>
      )}
    </Block>
  );
}

const ROLES: Record<Schemas['RoleSpending']['role'], string> = {
  agent: 'Agent',
  simulator: 'Simulated user',
  judge: 'Judges',
};

function Used({ usage }: { usage: Schemas['RoleSpending'][] }) {
  return (
    <Block title="Cost and tokens" hint="A sum covers the runs of which it is known">
      <Table aria-label="Cost and tokens by role">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Role</Table.Th>
            <Table.Th ta="right">Tokens</Table.Th>
            <Table.Th ta="right">Cost</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {usage.map((one) => (
            <Table.Tr key={one.role}>
              <Table.Td>{ROLES[one.role]}</Table.Td>
              <Table.Td ta="right">
                <Sum value={one.tokens} text={compact} known={one.runsWithTokens} runs={one.runs} />
              </Table.Td>
              <Table.Td ta="right">
                <Sum value={one.cost} text={dollars} known={one.runsWithCost} runs={one.runs} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Block>
  );
}

interface SumProps {
  value: number | null;
  text: (value: number) => string;
  known: number;
  runs: number;
}

function Sum({ value, text, known, runs }: SumProps) {
  if (value === null) return <Tip term="unknown">not known</Tip>;
  return (
    <Group gap={6} justify="flex-end">
      {text(value)}
      {known < runs && (
        <Text size="xs" c="dimmed">
          {count(known)} of {plural(runs, 'run')}
        </Text>
      )}
    </Group>
  );
}
