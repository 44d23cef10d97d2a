// An execution in figures: progress, rates with what they rest on, time and where it came from.
import { Box, Group, Paper, SimpleGrid, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client';
import { CountsBar } from '../../parts/CountsBar';
import { labelTexts } from '../../parts/labels';
import { compact, count, duration, plural } from '../../parts/numbers';
import { faultText } from '../../parts/outcome';
import { Rate } from '../../parts/Rate';
import { RelativeTime } from '../../parts/RelativeTime';
import { type Term, Tip } from '../../parts/Tip';
import { Wholeness } from '../../parts/Wholeness';
import type { Summary as Figures } from './runs';

type Execution = Schemas['Execution'];

export function Summary({ execution, summary }: { execution: Execution; summary: Figures }) {
  const { counts } = summary;
  return (
    <Paper withBorder p="sm" mb="sm">
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Text size="sm" role="status">
            {count(counts.finished)} of {plural(counts.total, 'run')} done
          </Text>
          <Wholeness execution={execution} />
          <Origin execution={execution} />
        </Group>
        <CountsBar counts={counts} size="lg" />
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="xs">
          <Figure label="Passed of scored" term="scored">
            <Rate rate={summary.passRateOfScored} />
          </Figure>
          <Figure label="Passed of attempted" term="attempted">
            <Rate rate={summary.passRateOfAttempted} />
          </Figure>
          <Figure label="Time">{timeTaken(execution)}</Figure>
          <Figure label="Tokens">
            <Tokens summary={summary} />
          </Figure>
          {counts.errored > 0 && (
            <Figure label="Errors, by whose fault">
              {Object.entries(summary.errorsByFault)
                .map(([fault, number]) => `${count(number)} of the ${faultText(fault)}`)
                .join(', ')}
            </Figure>
          )}
          {summary.flaky.length > 0 && (
            <Figure label="Flaky" term="flaky">
              <Subjects
                rows={summary.flaky.map((one) => [
                  one.subject.label,
                  `${count(one.passed)} passed, ${count(one.failed)} failed`,
                ])}
              />
            </Figure>
          )}
          {counts.total > 1 && summary.slowest.length > 0 && (
            <Figure label="Slowest">
              <Subjects rows={summary.slowest.map((one) => [one.subject.label, duration(one.latencyMs)])} />
            </Figure>
          )}
        </SimpleGrid>
      </Stack>
    </Paper>
  );
}

interface FigureProps {
  label: string;
  /** What the label means */
  term?: Term;
  children: ReactNode;
}

function Figure({ label, term, children }: FigureProps) {
  return (
    <Box role="group" aria-label={label}>
      <Text size="xs" c="dimmed">
        {term ? <Tip term={term}>{label}</Tip> : label}
      </Text>
      <Text size="sm" component="div">
        {children}
      </Text>
    </Box>
  );
}

function Tokens({ summary }: { summary: Figures }) {
  if (summary.tokens === null) return <>not reported</>;
  return (
    <>
      {compact(summary.tokens)}{' '}
      <Text span size="xs" c="dimmed">
        by {count(summary.runsWithTokens)} of {plural(summary.counts.total, 'run')}
      </Text>
    </>
  );
}

const MOST_SUBJECTS = 3;

/** The first few subjects, each with its figure. */
function Subjects({ rows }: { rows: [subject: string, figure: string][] }) {
  return (
    <>
      {rows.slice(0, MOST_SUBJECTS).map(([subject, figure]) => (
        <Text key={subject} size="xs">
          {subject}{' '}
          <Text span inherit c="dimmed">
            {figure}
          </Text>
        </Text>
      ))}
      {rows.length > MOST_SUBJECTS && (
        <Text size="xs" c="dimmed">
          and {count(rows.length - MOST_SUBJECTS)} more
        </Text>
      )}
    </>
  );
}

function timeTaken({ startedAt, completedAt }: Execution): string {
  if (!startedAt) return 'not started';
  if (!completedAt) return 'under way';
  return duration(Date.parse(completedAt) - Date.parse(startedAt));
}

function Origin({ execution }: { execution: Execution }) {
  const started = execution.trigger && `started by ${execution.trigger}`;
  const parts = [started, ...labelTexts(execution)].filter(Boolean);
  return (
    <Text size="sm" c="dimmed" component="div">
      {parts.join(' · ')} <RelativeTime at={execution.createdAt} />
    </Text>
  );
}
