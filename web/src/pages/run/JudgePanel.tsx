// What the judge of the scenario's criteria found, and on which words it rests.
import { Group, Paper, Text, Title } from '@mantine/core';
import { percent } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { Evidence } from './Evidence';
import classes from './Run.module.css';
import { quotesOf, type Result, type Run } from './results';

export function JudgePanel({ run, results }: { run: Run; results: Result[] }) {
  const found = run.output?.evaluation;
  if (!found) return null;
  const judge = results.find((result) => result.type === 'llm-judge' && result.name === 'criteria');
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h4">
          Judge
        </Title>
        {found.confidence !== null && found.confidence !== undefined && (
          <Text size="xs" c="dimmed">
            {percent(found.confidence)} sure
          </Text>
        )}
      </Group>
      <Group gap="xs" mb={6}>
        <OutcomeBadge
          standing={found.successMet ? 'pass' : 'fail'}
          label={found.successMet ? 'Success criteria met' : 'Success criteria not met'}
          size="sm"
        />
        {found.failureMet && <OutcomeBadge standing="fail" label="Failure criteria met" size="sm" />}
      </Group>
      <Text size="sm" className={classes.reason} mb="xs">
        {found.reasoning}
      </Text>
      {judge && <Evidence quotes={quotesOf(judge)} />}
    </Paper>
  );
}
