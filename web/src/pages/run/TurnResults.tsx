// What the evaluators found after one turn: a chip for each, which opens that turn's own result below it.
import { Badge, Group, Paper, Text } from '@mantine/core';
import { OUTCOME_STYLES, OutcomeBadge } from '../../parts/OutcomeBadge';
import { ResultDetails } from './ResultDetails';
import classes from './Run.module.css';
import { keyOf, type Result, scoreText, standingOfResult, titleOf, valueText } from './results';
import { type ChipsRow, chipKey } from './transcript';

interface Props {
  row: ChipsRow;
  opened: ReadonlySet<string>;
  onToggle: (key: string) => void;
}

export function TurnResults({ row, opened, onToggle }: Props) {
  const shown = row.results.filter((result) => opened.has(chipKey(row.turn, result)));
  return (
    <>
      <ul className={classes.chips} aria-label={`Evaluators after turn ${row.turn}`}>
        {row.results.map((result) => {
          const key = chipKey(row.turn, result);
          return (
            <li key={keyOf(result)}>
              <button
                type="button"
                aria-expanded={opened.has(key)}
                title={hint(result)}
                onClick={() => onToggle(key)}
              >
                <Chip result={result} />
              </button>
            </li>
          );
        })}
      </ul>
      {shown.map((result) => (
        <TurnResult key={keyOf(result)} result={result} turn={row.turn} />
      ))}
    </>
  );
}

function hint(result: Result): string {
  if (result.kind === 'metric') return result.reason;
  return `${OUTCOME_STYLES[standingOfResult(result)].word}: ${result.reason}`;
}

function Chip({ result }: { result: Result }) {
  if (result.kind === 'assertion' || result.error)
    return <OutcomeBadge standing={standingOfResult(result)} label={titleOf(result)} />;
  return (
    <Badge variant="default" size="sm" fw={400} miw="max-content">
      {titleOf(result)} {valueText(result)}
    </Badge>
  );
}

function TurnResult({ result, turn }: { result: Result; turn: number }) {
  const name = titleOf(result);
  const figure = result.kind === 'metric' ? valueText(result) : scoreText(result);
  return (
    <Paper withBorder p="xs" mt={6} component="section" aria-label={`${name} after turn ${turn}`}>
      <Group gap="xs" mb={4}>
        <Text size="sm" fw={600}>
          {name}
        </Text>
        {result.kind === 'assertion' && <OutcomeBadge standing={standingOfResult(result)} />}
        <Text size="sm" className={classes.figures}>
          {figure}
        </Text>
      </Group>
      <ResultDetails result={result} />
    </Paper>
  );
}
