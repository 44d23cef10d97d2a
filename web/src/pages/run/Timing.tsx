// Where the time went: the agent's latency per turn, and what the evaluators took after it.
import { Group, Paper, Text, Title } from '@mantine/core';
import { duration } from '../../parts/numbers';
import classes from './Run.module.css';
import type { Result, Turn } from './results';

const MOST = 40;

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
      <table aria-label="Timing" className={classes.timing}>
        <tbody>
          {timed.slice(0, MOST).map(({ turn, agent, evaluating }) => (
            <tr key={turn}>
              <th scope="row">
                <button type="button" onClick={() => onGo(turn)}>
                  Turn {turn}
                </button>
              </th>
              <td aria-hidden>
                <div className={classes.bars}>
                  <div className={classes.bar} style={{ width: `${(95 * agent) / longest}%` }} />
                  {evaluating > 0 && (
                    <div
                      className={classes.bar}
                      data-kind="evaluating"
                      style={{ width: `${(95 * evaluating) / longest}%` }}
                    />
                  )}
                </div>
              </td>
              <td className={classes.figures}>
                {duration(agent)} + {duration(evaluating)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
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
