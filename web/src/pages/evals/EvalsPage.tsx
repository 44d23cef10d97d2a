// The evals of a project, with what the last execution of each came to.
import { Group, Table, Text, VisuallyHidden } from '@mantine/core';
import { IconClipboardCheck, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { evalsQuery, executionsQuery, PAGE } from '../../api/queries';
import { BrokenPlugins } from '../../parts/BrokenPlugins';
import { CountsBar } from '../../parts/CountsBar';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { LinkButton, PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { RelativeTime } from '../../parts/RelativeTime';
import { RunButton } from './RunButton';

export default function EvalsPage() {
  const evals = useQuery(evalsQuery);
  const executions = useQuery(executionsQuery({ limit: PAGE }));
  const add = (
    <LinkButton to="/evals/new" leftSection={<IconPlus size={16} aria-hidden />}>
      New eval
    </LinkButton>
  );
  return (
    <>
      <PageTitle title="Evals" actions={evals.data?.length ? add : undefined} />
      <BrokenPlugins />
      {evals.error && <ErrorState error={evals.error} onRetry={() => void evals.refetch()} />}
      {evals.isPending && <Loading />}
      {evals.data?.length === 0 && (
        <EmptyState icon={IconClipboardCheck} title="No evals yet" actions={add}>
          An eval is a named set of scenarios for one or more connectors. Run it after every change and see
          whether the agent got better or worse.
        </EmptyState>
      )}
      {evals.data && evals.data.length > 0 && (
        <EvalsTable evals={evals.data} newest={newestOf(executions.data?.items ?? [])} />
      )}
    </>
  );
}

function newestOf(executions: Schemas['Execution'][]): Map<string, Schemas['Execution']> {
  const newest = new Map<string, Schemas['Execution']>();
  for (const execution of executions) {
    if (execution.evalId && !newest.has(execution.evalId)) newest.set(execution.evalId, execution);
  }
  return newest;
}

interface Props {
  evals: Schemas['StoredEval'][];
  newest: Map<string, Schemas['Execution']>;
}

function EvalsTable({ evals, newest }: Props) {
  return (
    <Table.ScrollContainer minWidth={340} type="native" tabIndex={0} aria-label="Evals">
      <Table aria-label="Evals">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Eval</Table.Th>
            <Table.Th w="40%">Last execution</Table.Th>
            <Table.Th visibleFrom="sm">When</Table.Th>
            <Table.Th pos="relative">
              <VisuallyHidden>Actions</VisuallyHidden>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {evals.map((one) => {
            const last = newest.get(one.id);
            return (
              <Table.Tr key={one.id}>
                <Table.Td>
                  <PageLink to="/evals/$evalId" params={{ evalId: one.id }} fw={600}>
                    {one.name}
                  </PageLink>
                  <Text size="xs" c="dimmed">
                    {plural(one.scenarioIds.length, 'scenario')},{' '}
                    {plural(one.connectorIds.length, 'connector')}
                  </Text>
                </Table.Td>
                <Table.Td>
                  {last ? (
                    <CountsBar counts={last.counts} size="sm" />
                  ) : (
                    <Text size="sm" c="dimmed">
                      never run
                    </Text>
                  )}
                </Table.Td>
                <Table.Td visibleFrom="sm">
                  {last && (
                    <PageLink to="/executions/$executionId" params={{ executionId: last.id }}>
                      <RelativeTime at={last.createdAt} c="inherit" />
                    </PageLink>
                  )}
                </Table.Td>
                <Table.Td>
                  <Group justify="flex-end">
                    <RunButton evaluation={one} size="xs" />
                  </Group>
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
