// One evaluator type: what it does, what it can be told, and an entry to begin with.
import { Badge, Code, Group, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import { evaluatorTypesQuery } from '../../api/definitions';
import { evaluatorHistoryQuery } from '../../api/figures';
import { GATES } from '../../editing/gates';
import { Section } from '../../editing/Section';
import { ErrorState } from '../../parts/ErrorState';
import { KindBadge } from '../../parts/KindBadge';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';
import { Tip } from '../../parts/Tip';
import { PageMissing } from '../../shell/PageStates';
import { type ConfigRow, configRows, exampleConfig } from './configRows';
import { EvaluatorHistory } from './EvaluatorHistory';

const route = getRouteApi('/evaluators/$type');

export default function EvaluatorPage() {
  const { type } = route.useParams();
  const types = useQuery(evaluatorTypesQuery);
  // The page comes at once, so that no part moves another.
  const history = useQuery(evaluatorHistoryQuery(type));
  if (types.error) return <ErrorState error={types.error} onRetry={() => void types.refetch()} />;
  if (!types.data || history.isPending) return <Loading rows={12} />;
  const definition = types.data.find((one) => one.type === type);
  return definition ? <EvaluatorDescription type={definition} /> : <PageMissing />;
}

function EvaluatorDescription({ type }: { type: Schemas['EvaluatorType'] }) {
  const rows = configRows(type.configSchema);
  const config = exampleConfig(type.configSchema);
  const entry = Object.keys(config).length > 0 ? { type: type.type, config } : { type: type.type };
  return (
    <>
      <PageTitle
        title={type.label}
        above={[
          <PageLink key="evaluators" to="/evaluators">
            Evaluators
          </PageLink>,
        ]}
        beside={<KindBadge kind={type.kind} />}
      />
      <Stack gap="md" maw={960}>
        <Text>{type.description}</Text>
        <Group gap="xl">
          <Fact name="Type" value={<Code>{type.type}</Code>} />
          {type.kind === 'assertion' && <Fact name={<Tip term="gate">Gate</Tip>} value={gateText(type)} />}
          <Fact
            name="From"
            value={type.builtin ? 'Built in' : <Badge variant="default">{type.source}</Badge>}
          />
        </Group>
        <EvaluatorHistory type={type.type} />
        <Section title="Config">
          {rows.length === 0 ? (
            <Text c="dimmed">Nothing to set.</Text>
          ) : (
            <ConfigTable rows={rows} label={type.label} />
          )}
        </Section>
        <Section title="Example" hint="In a scenario's evaluators.">
          <Code block>{JSON.stringify(entry, null, 2)}</Code>
        </Section>
      </Stack>
    </>
  );
}

function gateText({ gate, gateByConfig }: Schemas['EvaluatorType']): string {
  const text = GATES[gate].meaning;
  return gateByConfig ? `${text}, unless its config says otherwise` : text;
}

function Fact({ name, value }: { name: React.ReactNode; value: React.ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <Text size="sm" component="div">
        {value}
      </Text>
    </div>
  );
}

function ConfigTable({ rows, label }: { rows: ConfigRow[]; label: string }) {
  return (
    <Table.ScrollContainer
      minWidth={560}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': `Config of ${label}` } }}
    >
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Setting</Table.Th>
            <Table.Th>Type</Table.Th>
            <Table.Th>Default</Table.Th>
            <Table.Th>Meaning</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.name}>
              <Table.Td>
                <Code>{row.name}</Code>
              </Table.Td>
              <Table.Td>
                <Text size="sm">{row.type}</Text>
              </Table.Td>
              <Table.Td>
                {row.required ? <Text size="sm">required</Text> : row.preset && <Code>{row.preset}</Code>}
              </Table.Td>
              <Table.Td>
                <Text size="sm">{row.description}</Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
