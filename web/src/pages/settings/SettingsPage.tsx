// What this server works with: models, storage, plugins. It is set in the config file, not here.
import { Alert, Badge, Code, Group, Stack, Table, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client';
import { pluginsQuery, providersQuery, refusedQuery, statusQuery } from '../../api/server';
import { Section } from '../../editing/Section';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';

export default function SettingsPage() {
  return (
    <>
      <PageTitle title="Settings" />
      <Stack gap="md" maw={960}>
        <Text size="sm" c="dimmed">
          These come from the project's config file. Change them there and start the server again.
        </Text>
        <Project />
        <ModelsSection />
        <PluginsSection />
      </Stack>
    </>
  );
}

function Project() {
  const status = useQuery(statusQuery);
  return (
    <Section title="Project and storage">
      {status.error && <ErrorState error={status.error} onRetry={() => void status.refetch()} />}
      {status.isPending && <Loading rows={4} />}
      {status.data && <Facts facts={projectFacts(status.data)} />}
      {status.data?.processor.problem && (
        <Alert color="red" icon={<IconAlertTriangle aria-hidden />} title="Runs are not being processed">
          {status.data.processor.problem}
        </Alert>
      )}
      {status.data?.problem && !status.data.processor.problem && (
        <Alert color="red" icon={<IconAlertTriangle aria-hidden />} title="The server cannot do its work">
          {status.data.problem}
        </Alert>
      )}
      <Refused />
    </Section>
  );
}

/** Definitions an earlier version took and this one refuses. */
function Refused() {
  const refused = useQuery(refusedQuery);
  if (!refused.data?.length) return null;
  return (
    <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title="Definitions that cannot be run">
      <Text size="sm">Change them and save them again:</Text>
      {refused.data.flatMap((one) =>
        one.problems.map((problem) => (
          <Text key={`${one.id} ${problem}`} size="sm">
            {problem}
          </Text>
        )),
      )}
    </Alert>
  );
}

function projectFacts(status: Schemas['Status']): [string, ReactNode][] {
  const { processor, intake } = status;
  const working = processor.enabled
    ? processor.running
      ? 'Working'
      : 'Stopped'
    : 'Off; other processes do the runs';
  return [
    ['Project', status.name ?? 'Without a name'],
    ['Version', status.version],
    ['Storage', status.storage === 'sqlite' ? 'SQLite' : 'PostgreSQL'],
    ['Run processor', `${working}${status.queued ? ', runs are waiting' : ''}`],
    ['Telemetry', intake.enabled ? (intake.running ? 'Taken in' : 'Stopped') : 'Off'],
    ['Access', status.tokenRequired ? 'With a token' : 'This computer only'],
  ];
}

function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <Table variant="vertical" withRowBorders={false} layout="fixed">
      <Table.Tbody>
        {facts.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Th w={160} scope="row">
              {name}
            </Table.Th>
            <Table.Td>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function ModelsSection() {
  const providers = useQuery(providersQuery);
  const models = providers.data?.models;
  return (
    <Section title="Models" hint="Who judges, who plays the simulated user, and who compares meanings.">
      {providers.error && <ErrorState error={providers.error} onRetry={() => void providers.refetch()} />}
      {providers.isPending && <Loading rows={3} />}
      {providers.data && !models && (
        <Text size="sm">
          No model is set up. Scripts and deterministic evaluators work without one; judges and simulated
          users need <Code>llmSettings</Code> in the config file.
        </Text>
      )}
      {models && (
        <Facts
          facts={[
            ['Evaluation', models.evaluation ?? 'Not set'],
            ['Persona', models.persona ?? 'Not set'],
            ['Embedding', models.embedding],
          ]}
        />
      )}
      {providers.data?.items.map((provider) => (
        <Provider key={provider.name} provider={provider} />
      ))}
    </Section>
  );
}

const KEYS = {
  set: { word: 'Key is set', color: 'teal', icon: IconCircleCheck },
  needed: { word: 'Key needed', color: 'orange', icon: IconCircleX },
  'not needed': { word: 'No key needed', color: 'gray', icon: IconCircleCheck },
} as const;

function Provider({ provider }: { provider: Schemas['ModelProvider'] }) {
  const { color, icon: Icon, word } = KEYS[provider.key];
  return (
    <Group gap="sm">
      <Text fw={500}>{provider.name}</Text>
      {provider.isDefault && <Badge variant="default">Default</Badge>}
      <Badge variant="light" color={color} leftSection={<Icon size={12} aria-hidden />}>
        {word}
      </Badge>
      {provider.address && <Code>{provider.address}</Code>}
      {provider.problem && <Text size="sm">{provider.problem}</Text>}
    </Group>
  );
}

function PluginsSection() {
  const plugins = useQuery(pluginsQuery);
  return (
    <Section title="Plugins" hint="No runs are worked on while a plugin cannot be loaded.">
      {plugins.error && <ErrorState error={plugins.error} onRetry={() => void plugins.refetch()} />}
      {plugins.isPending && <Loading rows={3} />}
      {plugins.data?.length === 0 && (
        <Text size="sm">
          None is loaded. List them under <Code>plugins</Code> in the config file.
        </Text>
      )}
      {plugins.data?.map((plugin) => (
        <Plugin key={plugin.name} plugin={plugin} />
      ))}
    </Section>
  );
}

function Plugin({ plugin }: { plugin: Schemas['LoadedPlugin'] }) {
  return (
    <Stack gap={4}>
      <Group gap="sm">
        <Text fw={500}>{plugin.name}</Text>
        {plugin.path && (
          <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {plugin.path}
          </Text>
        )}
      </Group>
      {plugin.error && (
        <Alert color="red" icon={<IconAlertTriangle aria-hidden />} title="It could not be loaded">
          <Code block>{plugin.error}</Code>
        </Alert>
      )}
      {plugin.evaluators.length > 0 && (
        <Group gap="xs">
          <Text size="sm">Evaluators:</Text>
          {plugin.evaluators.map((type) => (
            <PageLink key={type} to="/evaluators/$type" params={{ type }} size="sm">
              {type}
            </PageLink>
          ))}
        </Group>
      )}
      {plugin.connectors.length > 0 && <Text size="sm">Connectors: {plugin.connectors.join(', ')}</Text>}
    </Stack>
  );
}
