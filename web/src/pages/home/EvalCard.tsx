// One eval on a card: its pass rate, the difference to its baseline, what moved, and its requirements.
import { Badge, Group, Paper, Stack, Text, Title } from '@mantine/core';
import {
  IconArrowDownRight,
  IconArrowUpRight,
  IconCircleCheck,
  IconCircleX,
  IconHelpCircle,
  IconPlayerPlay,
} from '@tabler/icons-react';
import type { Schemas } from '../../api/client';
import { Delta } from '../../parts/Delta';
import { origin } from '../../parts/labels';
import { PageLink } from '../../parts/links';
import { percent, plural } from '../../parts/numbers';
import { RateRange } from '../../parts/PassShare';
import { RelativeTime } from '../../parts/RelativeTime';
import { Sparkline } from '../../parts/Sparkline';
import { Tip } from '../../parts/Tip';
import classes from './Home.module.css';

export type Card = Schemas['EvalCard'];

export function EvalCard({ card }: { card: Card }) {
  return (
    <Paper withBorder p="md" component="article" aria-label={card.evalName} className={classes.card}>
      <Stack gap="sm" h="100%">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Title order={2} size="h3" className={classes.name}>
            <PageLink to="/evals/$evalId" params={{ evalId: card.evalId }} inherit c="inherit">
              {card.evalName}
            </PageLink>
          </Title>
          {card.underWay && <UnderWay execution={card.underWay} />}
        </Group>
        {card.execution ? <Results card={card} execution={card.execution} /> : <NeverRan />}
      </Stack>
    </Paper>
  );
}

function UnderWay({ execution }: { execution: Schemas['Execution'] }) {
  const { finished, total } = execution.counts;
  return (
    <PageLink
      to="/executions/$executionId"
      params={{ executionId: execution.id }}
      className={classes.running}
    >
      <IconPlayerPlay size={13} aria-hidden /> {finished} of {total} done
    </PageLink>
  );
}

function NeverRan() {
  return (
    <Text size="sm" c="dimmed">
      Never ran. Open it and press Run.
    </Text>
  );
}

function Results({ card, execution }: { card: Card; execution: Schemas['Execution'] }) {
  return (
    <>
      <Group justify="space-between" align="flex-end" wrap="nowrap" gap="xs">
        <div>
          <PassRate card={card} />
          <Difference card={card} />
        </div>
        <Trend card={card} />
      </Group>
      {card.passRate?.rate != null && (
        <RateRange rate={card.passRate.rate} low={card.passRate.low} high={card.passRate.high} />
      )}
      <Group gap={6}>
        <Moved card={card} />
        <Requirements card={card} />
      </Group>
      <Origin execution={execution} />
    </>
  );
}

function PassRate({ card }: { card: Card }) {
  const rate = card.passRate;
  if (!rate || rate.rate === null) {
    return (
      <Text c="dimmed" size="sm">
        Nothing was scored
      </Text>
    );
  }
  return (
    <Group gap={8} align="baseline">
      <Text span className={classes.rate}>
        {percent(rate.rate)}
      </Text>
      <Text span size="sm" c="dimmed">
        {rate.passed} of {rate.of} passed,{' '}
        <Tip term="interval">
          {percent(rate.low)} to {percent(rate.high)}
        </Tip>
      </Text>
    </Group>
  );
}

function Difference({ card }: { card: Card }) {
  const { progress, note } = card;
  if (!progress) {
    return (
      <Text size="xs" c="dimmed">
        {note}
      </Text>
    );
  }
  const { difference, low, high } = progress.overall;
  return (
    <Text size="sm" component="div">
      <Delta difference={difference} low={low} high={high} share />{' '}
      <Text span size="sm" c="dimmed">
        {progress.reference.kind === 'baseline' ? (
          <>
            since <Tip term="baseline">{progress.reference.name}</Tip>
          </>
        ) : (
          'since the execution before'
        )}
      </Text>
    </Text>
  );
}

function Trend({ card }: { card: Card }) {
  const points = card.trend.flatMap((point) =>
    point.rate.rate === null ? [] : [{ at: Date.parse(point.createdAt), rate: point.rate.rate }],
  );
  if (points.length < 2) return null;
  return (
    <Sparkline
      points={points}
      label={`Pass rate of the last ${points.length} executions, from ${percent(points[0]?.rate)} to ${percent(points.at(-1)?.rate)}`}
    />
  );
}

const MOVES = [
  { category: 'regressed', color: 'red', icon: IconArrowDownRight },
  { category: 'errored', color: 'orange', icon: IconHelpCircle },
  { category: 'fixed', color: 'teal', icon: IconArrowUpRight },
] as const;

function Moved({ card: { progress, execution } }: { card: Card }) {
  if (!progress || !execution) return null;
  const moves = MOVES.filter(({ category }) => (progress.counts[category] ?? 0) > 0);
  const search = { base: progress.reference.executionId, candidate: execution.id };
  return (
    <>
      {moves.map(({ category, color, icon: MoveIcon }) => (
        <PageLink key={category} to="/compare" search={{ ...search, tab: category }} underline="never">
          <Mark color={color} icon={<MoveIcon size={13} aria-hidden />}>
            {`${progress.counts[category]} ${category}`}
          </Mark>
        </PageLink>
      ))}
      {moves.length === 0 && (
        <PageLink to="/compare" search={search} size="sm">
          No change
        </PageLink>
      )}
    </>
  );
}

function Requirements({ card }: { card: Card }) {
  const missed = card.requirements.filter((one) => one.standing === 'missed');
  const open = card.requirements.filter((one) => one.standing === 'undecided');
  if (card.requirements.length === 0) return null;
  const titles = [...missed, ...open].map((one) => `${one.sentence}: ${one.evidence}`).join('\n');
  if (missed.length > 0) {
    return (
      <Mark color="red" icon={<IconCircleX size={13} aria-hidden />} title={titles}>
        {`${plural(missed.length, 'requirement')} missed`}
      </Mark>
    );
  }
  if (open.length > 0) {
    return (
      <Mark color="orange" icon={<IconHelpCircle size={13} aria-hidden />} title={titles}>
        {`${plural(open.length, 'requirement')} undecided`}
      </Mark>
    );
  }
  return (
    <Mark color="teal" icon={<IconCircleCheck size={13} aria-hidden />}>
      {`${plural(card.requirements.length, 'requirement')} met`}
    </Mark>
  );
}

interface MarkProps {
  color: string;
  icon: React.ReactNode;
  title?: string;
  children: string;
}

function Mark({ color, icon, title, children }: MarkProps) {
  const dark = `color-mix(in srgb, var(--mantine-color-${color}-9) 75%, black)`;
  return (
    <Badge
      variant="light"
      color={color}
      leftSection={icon}
      title={title}
      c={`light-dark(${dark}, var(--mantine-color-${color}-2))`}
    >
      {children}
    </Badge>
  );
}

function Origin({ execution }: { execution: Schemas['Execution'] }) {
  const { branch, commit } = origin(execution.labels);
  return (
    <Text size="xs" c="dimmed" mt="auto" component="div">
      <PageLink
        to="/executions/$executionId"
        params={{ executionId: execution.id }}
        inherit
        c="inherit"
        underline="always"
      >
        <RelativeTime at={execution.createdAt} size="xs" c="inherit" />
      </PageLink>
      {branch && ` · ${branch}`}
      {commit && (
        <>
          {' · '}
          <code>{commit}</code>
        </>
      )}
    </Text>
  );
}
