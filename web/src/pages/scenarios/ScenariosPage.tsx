// All scenarios, with what became of each the last time it ran.
import { Group, MultiSelect, Text, TextInput } from '@mantine/core';
import { IconMessages, IconPlus, IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { scenariosQuery } from '../../api/queries';
import { matches } from '../../editing/Listing';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { LinkButton } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { useSearchParam } from '../../parts/useSearchParam';
import { asStored, type StoredScenario } from './draft';
import { ScenarioList } from './ScenarioList';

export default function ScenariosPage() {
  const scenarios = useQuery(scenariosQuery);
  const stored = useMemo(() => scenarios.data?.map(asStored) ?? [], [scenarios.data]);
  const add = (
    <LinkButton to="/scenarios/new" leftSection={<IconPlus size={16} />}>
      New scenario
    </LinkButton>
  );
  return (
    <>
      <PageTitle title="Scenarios" actions={scenarios.data?.length ? add : undefined} />
      {scenarios.error && <ErrorState error={scenarios.error} onRetry={() => void scenarios.refetch()} />}
      {scenarios.isPending && <Loading />}
      {scenarios.data?.length === 0 && (
        <EmptyState icon={IconMessages} title="No scenarios yet" actions={add}>
          A scenario is what is tested: a conversation with the agent, and what must hold in it.
        </EmptyState>
      )}
      {stored.length > 0 && <Found scenarios={stored} />}
    </>
  );
}

function Found({ scenarios }: { scenarios: StoredScenario[] }) {
  const [search, setSearch] = useSearchParam('text');
  const [tagged, setTagged] = useSearchParam('tags');
  const tags = useMemo(() => tagged.split('\n').filter(Boolean), [tagged]);
  const known = useMemo(() => [...new Set(scenarios.flatMap((one) => one.tags))].sort(), [scenarios]);
  const matching = useMemo(
    () =>
      scenarios.filter(
        (one) =>
          tags.every((tag) => one.tags.includes(tag)) &&
          matches(search, `${one.name} ${one.tags.join(' ')} ${one.instructions ?? ''}`),
      ),
    [scenarios, search, tags],
  );
  return (
    <>
      <Group mb="sm" align="flex-start">
        <TextInput
          aria-label="Search scenarios"
          placeholder="Search"
          leftSection={<IconSearch size={16} />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          w={{ base: '100%', xs: 280 }}
        />
        {known.length > 0 && (
          <MultiSelect
            aria-label="Only with these tags"
            placeholder={tags.length > 0 ? undefined : 'All tags'}
            data={known}
            value={tags}
            onChange={(chosen) => setTagged(chosen.join('\n'))}
            w={{ base: '100%', xs: 240 }}
          />
        )}
        <Text size="sm" c="dimmed" role="status" lh="36px">
          {matching.length === scenarios.length
            ? plural(scenarios.length, 'scenario')
            : `${matching.length} of ${plural(scenarios.length, 'scenario')}`}
        </Text>
      </Group>
      <ScenarioList scenarios={matching} />
    </>
  );
}
