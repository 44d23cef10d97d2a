// The catalogue of evaluators: what can be checked and measured here.
import { Badge, Code, Group, SimpleGrid, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { evaluatorStatsQuery, evaluatorTypesQuery } from '../../api/queries';
import { GATES } from '../../editing/gates';
import { matches } from '../../editing/Listing';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { EvaluatorsTable } from '../../parts/EvaluatorsTable';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';
import { useSearchParam } from '../../parts/useSearchParam';
import classes from './Evaluators.module.css';

type Type = Schemas['EvaluatorType'];

export default function EvaluatorsPage() {
  const types = useQuery(evaluatorTypesQuery);
  const [since] = useState(() => new Date(Date.now() - WEEK).toISOString());
  // The page comes at once, so that no part moves another.
  const week = useQuery(evaluatorStatsQuery({ since }));
  const [search, setSearch] = useSearchParam('text');
  const matching = (types.data ?? []).filter((one) =>
    matches(search, `${one.label} ${one.type} ${one.description}`),
  );
  return (
    <>
      <PageTitle title="Evaluators" />
      <TextInput
        aria-label="Search evaluators"
        placeholder="Search"
        leftSection={<IconSearch size={16} />}
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
        w={{ base: '100%', xs: 280 }}
        mb="md"
      />
      {types.error && <ErrorState error={types.error} onRetry={() => void types.refetch()} />}
      {(types.isPending || week.isPending) && <Loading rows={12} />}
      {types.data && matching.length === 0 && <Text c="dimmed">Nothing matches "{search}".</Text>}
      <Stack gap="xl" display={week.isPending ? 'none' : undefined}>
        {!search && (
          <Block title="Failed most in the last seven days">
            <EvaluatorsTable query={{ since }} failing={LISTED} />
          </Block>
        )}
        <Kind title="Assertions" hint="Decide whether a run passes." types={matching} kind="assertion" />
        <Kind title="Metrics" hint="Only measure; they never fail a run." types={matching} kind="metric" />
      </Stack>
    </>
  );
}

const WEEK = 7 * 24 * 60 * 60 * 1_000;
const LISTED = 5;

type KindProps = { title: string; hint: string; types: Type[]; kind: Type['kind'] };

function Kind({ title, hint, types, kind }: KindProps) {
  const ofKind = types.filter((one) => one.kind === kind);
  if (ofKind.length === 0) return null;
  return (
    <section aria-label={title}>
      <Title order={2}>{title}</Title>
      <Text size="sm" c="dimmed" mb="sm">
        {hint}
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
        {ofKind.map((one) => (
          <TypeCard key={one.type} type={one} />
        ))}
      </SimpleGrid>
    </section>
  );
}

function TypeCard({ type }: { type: Type }) {
  return (
    <div className={classes.card}>
      <PageLink to="/evaluators/$type" params={{ type: type.type }} fw={600} className={classes.link}>
        {type.label}
      </PageLink>
      <Text size="sm">{type.description}</Text>
      <Group gap="xs" mt="auto" pt={4}>
        <Code>{type.type}</Code>
        {type.kind === 'assertion' && (
          <Text size="xs" c="dimmed">
            {GATES[type.gate].meaning}
          </Text>
        )}
        {!type.builtin && (
          <Badge variant="default" tt="none">
            {type.source}
          </Badge>
        )}
      </Group>
    </div>
  );
}
