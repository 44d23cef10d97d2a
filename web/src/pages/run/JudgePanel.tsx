// What the judge of the scenario's criteria found, and on which words it rests.
import { Box, Group, Paper, Text, Title } from '@mantine/core';
import { percent } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { JudgeQuotes } from './JudgeQuotes';
import { Markdown } from './Markdown';
import { quotesOf, type Result, type Run } from './results';

export function JudgePanel({ run, results }: { run: Run; results: Result[] }) {
  const judgement = run.output?.evaluation;
  if (!judgement) return null;
  const judge = results.find((result) => result.type === 'llm-judge' && result.name === 'criteria');
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h4">
          Judge
        </Title>
        {judgement.confidence !== null && judgement.confidence !== undefined && (
          <Text size="xs" c="dimmed">
            {percent(judgement.confidence)} sure
          </Text>
        )}
      </Group>
      <Group gap="xs" mb={6}>
        <OutcomeBadge
          standing={judgement.successMet ? 'pass' : 'fail'}
          label={judgement.successMet ? 'Success criteria met' : 'Success criteria not met'}
          size="sm"
        />
        {judgement.failureMet && <OutcomeBadge standing="fail" label="Failure criteria met" />}
      </Group>
      <Box mb="xs">
        <Markdown text={judgement.reasoning} />
      </Box>
      {judge && <JudgeQuotes quotes={quotesOf(judge)} />}
    </Paper>
  );
}
