// The three steps to a first result. Steps already taken are ticked; the last one ends them.
import { Group, Paper, Stack, Text, ThemeIcon, Title } from '@mantine/core';
import { IconCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { connectorsQuery, evalsQuery, scenariosQuery } from '../../api/definitions';
import { LinkButton } from '../../parts/links';

const STEPS = [
  {
    title: 'Connect your agent',
    text: 'A connector carries each message to the agent: over HTTP, LangGraph, an OpenAI-compatible API, or a Python function.',
    to: '/connectors/new',
    label: 'Add a connector',
  },
  {
    title: 'Write a scenario',
    text: 'What the user says or wants, and the evaluators that decide whether the agent did well.',
    to: '/scenarios/new',
    label: 'Write a scenario',
  },
  {
    title: 'Run an eval',
    text: 'Choose scenarios and connectors, press Run, and watch the result come in.',
    to: '/evals/new',
    label: 'Make an eval',
  },
] as const;

export function FirstSteps() {
  const connectors = useQuery(connectorsQuery);
  const scenarios = useQuery(scenariosQuery);
  const evals = useQuery(evalsQuery);
  // An eval that was made was not run yet: these steps are shown until the first execution.
  const done = [...[connectors, scenarios].map((list) => (list.data?.length ?? 0) > 0), false];
  const next = done.indexOf(false);
  const evaluation = evals.data?.[0];
  return (
    <Stack maw={720}>
      <Text>Three steps to the first result.</Text>
      {STEPS.map((step, place) => (
        <Paper key={step.title} withBorder p="md" component="section" aria-label={step.title}>
          <Group justify="space-between" gap="sm">
            <Group gap="sm" wrap="nowrap" align="flex-start" flex={1} miw={220}>
              <ThemeIcon
                radius="xl"
                variant={done[place] ? 'filled' : 'light'}
                color={done[place] ? 'teal' : 'indigo'}
              >
                {done[place] ? <IconCheck size={16} aria-label="done" /> : place + 1}
              </ThemeIcon>
              <div>
                <Title order={2} size="h4">
                  {step.title}
                </Title>
                <Text size="sm" c="dimmed">
                  {step.text}
                </Text>
              </div>
            </Group>
            {place === 2 && evaluation ? (
              <LinkButton to="/evals/$evalId" params={{ evalId: evaluation.id }}>
                Open {evaluation.name}
              </LinkButton>
            ) : (
              <LinkButton to={step.to} variant={place === next ? 'filled' : 'default'}>
                {step.label}
              </LinkButton>
            )}
          </Group>
        </Paper>
      ))}
    </Stack>
  );
}
