// What a comparison came to: the two rates, their difference, the decision with its reasons, and what changed.
import { Alert, Group, List, Paper, SimpleGrid, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconTrendingDown } from '@tabler/icons-react';
import type { Schemas } from '../../api/client';
import { Delta } from '../../parts/Delta';
import { origin } from '../../parts/labels';
import { PageLink } from '../../parts/links';
import { chance, percent, plural, points } from '../../parts/numbers';
import { RateRange } from '../../parts/PassShare';
import { RelativeTime } from '../../parts/RelativeTime';
import { resultsName } from '../../parts/resultsName';
import { Tip } from '../../parts/Tip';
import { Wholeness } from '../../parts/Wholeness';
import classes from './Compare.module.css';
import type { Comparison } from './rows';

const DECISIONS = {
  regressed: { title: 'Worse', color: 'red', icon: IconTrendingDown },
  undecided: { title: 'Not decided', color: 'orange', icon: IconAlertTriangle },
  none: { title: 'No regression was shown', color: 'teal', icon: IconCircleCheck },
} as const;

/** Something passed less often, and chance could still explain it. */
const DOUBTFUL = {
  title: 'Some passed less often, but not beyond chance; more repetitions would tell',
  color: 'orange',
  icon: IconAlertTriangle,
} as const;

export function Verdict({ comparison }: { comparison: Comparison }) {
  const doubtful = comparison.decision === 'none' && (comparison.counts.regressed ?? 0) > 0;
  const { title, color, icon: DecisionIcon } = doubtful ? DOUBTFUL : DECISIONS[comparison.decision];
  const reasons = comparison.reasons.filter((reason) => reason.toLowerCase() !== title.toLowerCase());
  return (
    <>
      <Alert color={color} icon={<DecisionIcon aria-hidden />} title={title} variant="light">
        <List size="sm" listStyleType={reasons.length > 1 ? undefined : 'none'}>
          {reasons.map((reason) => (
            <List.Item key={reason}>{reason}</List.Item>
          ))}
        </List>
      </Alert>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
        <Side side={comparison.base} name="base" />
        <Side side={comparison.candidate} name="candidate" />
        <Overall comparison={comparison} />
      </SimpleGrid>
      <Changes comparison={comparison} />
    </>
  );
}

function Side({ side, name }: { side: Schemas['ComparedSide']; name: 'base' | 'candidate' }) {
  const { rate, low, high, passed, of } = side.passRate;
  const { branch, commit } = origin(side.labels);
  return (
    <Paper withBorder p="md" component="section" aria-label={name === 'base' ? 'Base' : 'Candidate'}>
      <Text size="xs" c="dimmed" fw={600}>
        {name === 'base' ? 'Base' : 'Candidate'}
        {side.connector && ` · ${side.connector}`}
      </Text>
      <Group gap={8} align="baseline">
        <Text span className={classes.rate}>
          {percent(rate)}
        </Text>
        <Text span size="sm" c="dimmed">
          {passed} of {of} passed,{' '}
          <Tip term="interval">
            {percent(low)} to {percent(high)}
          </Tip>
        </Text>
      </Group>
      {rate !== null && <RateRange rate={rate} low={low} high={high} />}
      <Text size="xs" c="dimmed" mt={8} component="div">
        <SideLink side={side} />
        {side.createdAt && (
          <>
            {' · '}
            <RelativeTime at={side.createdAt} size="xs" />
          </>
        )}
        {branch && ` · ${branch}`}
        {commit && (
          <>
            {' · '}
            <code>{commit}</code>
          </>
        )}
      </Text>
      <Wholeness execution={side} />
    </Paper>
  );
}

function SideLink({ side }: { side: Schemas['ComparedSide'] }) {
  if (side.isResultsFile) {
    return (
      <PageLink to="/scoring/results" search={{ path: side.id }} inherit style={{ overflowWrap: 'anywhere' }}>
        {resultsName(side.id)}
      </PageLink>
    );
  }
  return (
    <PageLink to="/executions/$executionId" params={{ executionId: side.id }} inherit>
      {side.evalName ?? 'Single run'}
    </PageLink>
  );
}

function Overall({ comparison }: { comparison: Comparison }) {
  const { difference, low, high, subjects, p, detectable } = comparison.overall;
  return (
    <Paper withBorder p="md" component="section" aria-label="Difference">
      <Text size="xs" c="dimmed" fw={600}>
        Difference over <Tip term="subject">{plural(subjects, 'subject')}</Tip> that both have
      </Text>
      <div className={classes.rate}>
        <Delta difference={difference} low={low} high={high} share size="md" />
      </div>
      <Text size="sm" c="dimmed">
        {low !== null && high !== null && (
          <>
            <Tip term="interval">95% interval</Tip> {points(low)} to {points(high)},{' '}
          </>
        )}
        <Tip term="chance">chance alone</Tip>: {chance(p)}
      </Text>
      {detectable !== null && (
        <Text size="xs" c="dimmed" mt={4}>
          With so many, a difference of {Math.round(detectable * 100)} points or more would be seen.
        </Text>
      )}
    </Paper>
  );
}

function Changes({ comparison }: { comparison: Comparison }) {
  const { changes, notes } = comparison;
  if (changes.length === 0 && notes.length === 0) return null;
  return (
    <Paper withBorder p="md" component="section" aria-label="What changed around it">
      <List size="sm" spacing={2}>
        {changes.map((change) => (
          <List.Item key={`${change.what} ${change.name}`}>
            The {change.what}
            {change.name && ` (${change.name})`} changed: {short(change.base)} → {short(change.candidate)}
          </List.Item>
        ))}
        {notes.map((note) => (
          <List.Item key={note}>{note}</List.Item>
        ))}
      </List>
    </Paper>
  );
}

export function short(text: string | null): string {
  if (text === null) return 'none';
  return /^[0-9a-f]{40}$/.test(text) ? text.slice(0, 8) : text;
}
