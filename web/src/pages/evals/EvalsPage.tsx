// All evals, each with its last execution.
import { Group, Table, Text } from '@mantine/core';
import { IconClipboardCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { evalsQuery } from '../../api/definitions';
import { PAGE } from '../../api/queries';
import { executionsQuery } from '../../api/runs';
import { Listing } from '../../editing/Listing';
import { BrokenPlugins } from '../../parts/BrokenPlugins';
import { CountsBar } from '../../parts/CountsBar';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { RelativeTime } from '../../parts/RelativeTime';
import { RunButton } from './RunButton';

type Execution = Schemas['Execution'];

export default function EvalsPage() {
  const evals = useQuery(evalsQuery);
  const executions = useQuery(executionsQuery({ limit: PAGE }));
  const newest = newestOf(executions.data?.items ?? []);
  return (
    <Listing
      title="Evals"
      noun="eval"
      newAt="/evals/new"
      icon={IconClipboardCheck}
      why="An eval is a named set of scenarios for one or more connectors. Run it after every change and see whether the agent got better or worse."
      query={evals}
      notice={<BrokenPlugins />}
      narrowest={340}
      columns={[
        'Eval',
        { head: 'Last execution', width: '40%' },
        { head: 'Started', width: 130, visibleFrom: 'sm' },
        { head: 'Actions', width: 100, hidden: true },
      ]}
      row={(one) => <Cells evaluation={one} last={newest.get(one.id)} />}
    />
  );
}

function newestOf(executions: Execution[]): Map<string, Execution> {
  const newest = new Map<string, Execution>();
  for (const execution of executions) {
    if (execution.evalId && !newest.has(execution.evalId)) newest.set(execution.evalId, execution);
  }
  return newest;
}

function Cells({ evaluation, last }: { evaluation: Schemas['StoredEval']; last?: Execution }) {
  return (
    <>
      <Table.Td>
        <PageLink to="/evals/$evalId" params={{ evalId: evaluation.id }} fw={500}>
          {evaluation.name}
        </PageLink>
        <Text size="xs" c="dimmed">
          {plural(evaluation.scenarioIds.length, 'scenario')} ·{' '}
          {plural(evaluation.connectorIds.length, 'connector')}
        </Text>
      </Table.Td>
      <Table.Td>
        {last ? (
          <CountsBar counts={last.counts} size="sm" />
        ) : (
          <Text size="sm" c="dimmed">
            never ran
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
          <RunButton evaluation={evaluation} size="xs" />
        </Group>
      </Table.Td>
    </>
  );
}
