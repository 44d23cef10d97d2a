// Where the time went: the agent's latency per turn, and what the evaluators took after it.
import { Group, Paper, Table, Text, Title, UnstyledButton } from '@mantine/core';
import { duration } from '../../parts/numbers';
import classes from './Run.module.css';
import type { Result, Turn } from './results';

const MOST = 60;

export function Timing({ turns, onGo }: { turns: Turn[]; onGo: (turn: number) => void }) {
  const timed = turns
    .filter((turn) => turn.latencyMs !== null)
    .map((turn) => ({ ...spent(turn), turn: turn.turn }));
  if (timed.length === 0) return null;
  const longest = Math.max(...timed.map(({ agent, evaluating }) => agent + evaluating), 1);
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h4">
          Timing
        </Title>
        <Text size="xs" c="dimmed">
          agent, then evaluators
        </Text>
      </Group>
      <Table verticalSpacing={2} aria-label="Timing" withRowBorders={false}>
        <Table.Tbody>
          {timed.slice(0, MOST).map(({ turn, agent, evaluating }) => (
            <Table.Tr key={turn}>
              <Table.Td w={70}>
                <UnstyledButton fz="xs" onClick={() => onGo(turn)}>
                  Turn {turn}
                </UnstyledButton>
              </Table.Td>
              <Table.Td>
                <Group gap={1} wrap="nowrap" aria-hidden>
                  <div className={classes.bar} style={{ width: `${(95 * agent) / longest}%` }} />
                  {evaluating > 0 && (
                    <div
                      className={classes.bar}
                      data-kind="evaluating"
                      style={{ width: `${(95 * evaluating) / longest}%` }}
                    />
                  )}
                </Group>
              </Table.Td>
              <Table.Td w={130} ta="right" fz="xs" className={classes.figures}>
                {duration(agent)} + {duration(evaluating)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {timed.length > MOST && (
        <Text size="xs" c="dimmed">
          and {timed.length - MOST} more turns
        </Text>
      )}
    </Paper>
  );
}

/** Evaluators run beside each other: the longest one is what they took. */
function spent(turn: Turn): { agent: number; evaluating: number } {
  const took = (turn.evaluatorResults as Result[]).map((result) => result.durationMs ?? 0);
  return { agent: turn.latencyMs ?? 0, evaluating: Math.max(0, ...took) };
}
