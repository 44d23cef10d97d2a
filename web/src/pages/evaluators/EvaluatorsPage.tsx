// The catalogue of evaluators: what can be checked and measured here, and what failed most of late.
import { Badge, Box, Code, SegmentedControl, Table, Text } from '@mantine/core';
import { IconGauge } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { Schemas } from '../../api/client';
import { evaluatorTypesQuery } from '../../api/definitions';
import { evaluatorStatsQuery } from '../../api/figures';
import { GATES } from '../../editing/gates';
import { Listing } from '../../editing/Listing';
import { Block } from '../../parts/Block';
import { EvaluatorsTable } from '../../parts/EvaluatorsTable';
import { KindBadge } from '../../parts/KindBadge';
import { PageLink } from '../../parts/links';
import { useSearchParam } from '../../parts/useSearchParam';

type Type = Schemas['EvaluatorType'];

const WEEK = 7 * 24 * 60 * 60 * 1_000;
const LISTED = 5;
const KINDS = [
  { value: '', label: 'All' },
  { value: 'assertion', label: 'Assertions' },
  { value: 'metric', label: 'Metrics' },
];

export default function EvaluatorsPage() {
  const types = useQuery(evaluatorTypesQuery);
  const [since] = useState(() => new Date(Date.now() - WEEK).toISOString());
  // The page comes at once, so that no part moves another.
  const week = useQuery(evaluatorStatsQuery({ since }));
  const [kind, setKind] = useSearchParam('kind');
  const items = useMemo(
    () => types.data?.map((one) => ({ ...one, id: one.type, name: one.label })),
    [types.data],
  );
  return (
    <Listing
      title="Evaluators"
      noun="evaluator"
      icon={IconGauge}
      why="Evaluators decide whether a run passes, or measure it. Some come with EvalStudio; plugins bring more."
      query={{
        ...types,
        data: week.isPending ? undefined : items,
        isPending: types.isPending || week.isPending,
      }}
      words={(one) => `${one.type} ${one.description} ${one.source}`}
      keep={(one) => !kind || one.kind === kind}
      filters={<SegmentedControl size="xs" aria-label="Kind" data={KINDS} value={kind} onChange={setKind} />}
      narrowest={340}
      columns={[
        'Name',
        { head: 'Kind', width: 110 },
        { head: 'When it must hold', width: '26%', visibleFrom: 'sm' },
        { head: 'From', width: '16%', visibleFrom: 'sm' },
      ]}
      row={(one) => <Cells type={one} />}
      notice={
        !week.isPending && (
          <Box mb="md">
            <Block title="Failed most in the last seven days">
              <EvaluatorsTable query={{ since }} failing={LISTED} />
            </Block>
          </Box>
        )
      }
    />
  );
}

function Cells({ type }: { type: Type }) {
  return (
    <>
      <Table.Td>
        <PageLink to="/evaluators/$type" params={{ type: type.type }} fw={500}>
          {type.label}
        </PageLink>{' '}
        <Code>{type.type}</Code>
        <Text size="xs" c="dimmed">
          {type.description}
        </Text>
      </Table.Td>
      <Table.Td>
        <KindBadge kind={type.kind} />
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm">{type.kind === 'assertion' ? GATES[type.gate].label : 'It only measures'}</Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        {type.builtin ? (
          <Text size="sm" c="dimmed">
            built in
          </Text>
        ) : (
          <Badge variant="default">{type.source}</Badge>
        )}
      </Table.Td>
    </>
  );
}
