// What differs between two runs of one subject, in tables and marked texts.
import { Badge, Group, Table, Text, Title } from '@mantine/core';
import { useMemo } from 'react';
import type { Schemas } from '../../api/client';
import { Block } from '../../parts/Block';
import { plural } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { type Result, type Run, standingOfResult, titleOf, valueText } from '../run/results';
import classes from './Compare.module.css';
import { type Piece, type TurnDiff, turnDiffs, verdictDiffs, wordDiff } from './diff';

export function Marked({ pieces }: { pieces: Piece[] }) {
  return (
    <div className={classes.diff} dir="auto">
      {pieces.map((piece, place) => {
        const key = `${place} ${piece.kind}`;
        if (piece.kind === 'gone') return <del key={key}>{piece.text}</del>;
        if (piece.kind === 'new') return <ins key={key}>{piece.text}</ins>;
        return <span key={key}>{piece.text}</span>;
      })}
    </div>
  );
}

export function VerdictChanges({ base, candidate }: { base: Run; candidate: Run }) {
  const diffs = useMemo(() => verdictDiffs(base, candidate), [base, candidate]);
  if (diffs.length === 0) return null;
  return (
    <Block title="Verdicts" hint="What changed comes first">
      <Table.ScrollContainer minWidth={560} type="native" tabIndex={0} aria-label="Verdicts">
        <Table aria-label="Verdicts">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Evaluator</Table.Th>
              <Table.Th>Base</Table.Th>
              <Table.Th>Candidate</Table.Th>
              <Table.Th>Why, in the candidate</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {diffs.map(({ key, before, after, changed }) => (
              <Table.Tr key={key} className={classes.row} data-current={changed && after?.kind !== 'metric'}>
                <Table.Td>{titleOf((after ?? before) as Result)}</Table.Td>
                <Table.Td>
                  <Found result={before} />
                </Table.Td>
                <Table.Td>
                  <Found result={after} />
                </Table.Td>
                <Table.Td>
                  <Text size="sm" style={{ overflowWrap: 'anywhere' }} lineClamp={3}>
                    {after?.error ?? after?.reason ?? ''}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Block>
  );
}

function Found({ result }: { result: Result | null }) {
  if (!result) return <>–</>;
  if (result.kind === 'metric') return <>{valueText(result)}</>;
  return <OutcomeBadge standing={standingOfResult(result)} />;
}

export function DefinitionChanges({ changes }: { changes: Schemas['DefinitionChange'][] }) {
  if (changes.length === 0) return null;
  return (
    <Block title="What changed in the definitions">
      <Table aria-label="Changes of definitions" layout="fixed">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w="30%">Where</Table.Th>
            <Table.Th>Base and candidate</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {changes.map((change) => (
            <Table.Tr key={`${change.definition} ${change.path}`}>
              <Table.Td style={{ verticalAlign: 'top', overflowWrap: 'anywhere' }}>
                {change.definition} <code>{change.path}</code>
              </Table.Td>
              <Table.Td>
                <Marked pieces={wordDiff(change.base ?? '', change.candidate ?? '')} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Block>
  );
}

export function TurnDifferences({ base, candidate }: { base: Run; candidate: Run }) {
  const turns = useMemo(() => turnDiffs(base, candidate), [base, candidate]);
  const differing = turns.filter((turn) => !turn.same);
  return (
    <Block
      title="What was said differently"
      hint={
        differing.length > 0 ? (
          <span className={classes.legend}>
            <del>only in the base</del>, <ins>only in the candidate</ins>
          </span>
        ) : undefined
      }
    >
      {differing.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing: all {plural(turns.length, 'turn')} are the same, word for word.
        </Text>
      ) : (
        <ol className={classes.turns}>
          {differing.map((turn) => (
            <Turn key={turn.turn} turn={turn} />
          ))}
        </ol>
      )}
    </Block>
  );
}

function Turn({ turn }: { turn: TurnDiff }) {
  const userDiffers = turn.user.some((piece) => piece.kind !== 'same');
  return (
    <li>
      <Title order={3} size="sm" c="dimmed" mb={4}>
        {turn.turn === 0 ? 'Before the first turn' : `Turn ${turn.turn}`}
      </Title>
      {userDiffers && (
        <Group gap="xs" align="flex-start" wrap="nowrap" mb={4}>
          <Badge variant="default" size="sm">
            User
          </Badge>
          <Marked pieces={turn.user} />
        </Group>
      )}
      {turn.calls.map((call, place) => {
        const key = `${place} ${call.text}`;
        return <CallView key={key} call={call} />;
      })}
      <Marked pieces={turn.answer} />
    </li>
  );
}

function CallView({ call }: { call: TurnDiff['calls'][number] }) {
  return (
    <div className={`${classes.diff} ${classes.call}`}>
      {call.kind === 'gone' && <del>− {call.text}</del>}
      {call.kind === 'new' && <ins>+ {call.text}</ins>}
      {call.kind === 'same' && <span>&nbsp; {call.text}</span>}
    </div>
  );
}
