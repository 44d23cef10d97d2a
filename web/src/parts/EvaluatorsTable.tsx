// Every evaluator over many runs, in the server's figures: those that fail most first.
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../api/client';
import { evaluatorStatsQuery } from '../api/figures';
import { ErrorState } from './ErrorState';
import { Loading } from './Loading';
import { PageLink } from './links';
import { count, measure, plural } from './numbers';
import { Rate } from './Rate';

interface Props {
  query: Parameters<typeof evaluatorStatsQuery>[0];
  /** Only assertions that failed or broke, and only so many of them */
  failing?: number;
}

export function EvaluatorsTable({ query, failing }: Props) {
  const figures = useQuery(evaluatorStatsQuery(query));
  if (figures.error) return <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />;
  if (!figures.data) return <Loading rows={failing ?? 6} />;
  const { evaluators, runsRead, moreRuns } = figures.data;
  const rows = failing
    ? evaluators.filter((one) => one.failed + one.errored > 0).slice(0, failing)
    : evaluators;
  return (
    <>
      {rows.length > 0 ? (
        <Rows rows={rows} failing={failing !== undefined} />
      ) : (
        <Text size="sm">{failing ? 'No evaluator failed.' : 'No evaluator said anything.'}</Text>
      )}
      <Text size="xs" c="dimmed" mt="xs">
        From {plural(runsRead, 'run')}
        {moreRuns && '; older ones are left out'}
      </Text>
    </>
  );
}

function Rows({ rows, failing }: { rows: Schemas['EvaluatorFigures'][]; failing: boolean }) {
  const name = failing ? 'Evaluators that fail most' : 'Runs by evaluator';
  return (
    <Table.ScrollContainer minWidth={failing ? 330 : 560} type="native" tabIndex={0} aria-label={name}>
      <Table aria-label={name}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Evaluator</Table.Th>
            <Table.Th ta="right">Failed</Table.Th>
            <Table.Th ta="right">Errors</Table.Th>
            <Table.Th>Passed of checked</Table.Th>
            {!failing && <Table.Th ta="right">Mean</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((one) => (
            <Table.Tr key={`${one.type} ${one.name}`}>
              <Table.Td>
                <PageLink to="/evaluators/$type" params={{ type: one.type }} size="sm">
                  {one.name}
                </PageLink>
                {one.name !== one.type && (
                  <Text size="xs" c="dimmed">
                    {one.type}
                  </Text>
                )}
              </Table.Td>
              <Table.Td ta="right">{one.kind === 'assertion' ? count(one.failed) : ''}</Table.Td>
              <Table.Td ta="right">{count(one.errored)}</Table.Td>
              <Table.Td>{one.rate && <Rate rate={one.rate} />}</Table.Td>
              {!failing && <Table.Td ta="right">{one.values > 0 && measure(one.mean)}</Table.Td>}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
