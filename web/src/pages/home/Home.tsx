// What a team looks at first: each eval beside its baseline, what newly fails, and what ran.
import { Alert, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { executionStatsQuery, homeQuery } from '../../api/figures';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { FiguresTable } from '../../parts/FiguresTable';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { EvalCard } from './EvalCard';
import { NewFailures } from './NewFailures';
import { Flakiest, Slowest } from './Rankings';

export function Home() {
  const home = useQuery(homeQuery);
  const executions = useQuery(executionStatsQuery({ limit: 10, whole: false }));
  if (home.error) return <ErrorState error={home.error} onRetry={() => void home.refetch()} />;
  if (!home.data || !executions.data) return <Loading rows={12} />;
  const { evals, notShown } = home.data;
  return (
    <Stack gap="lg">
      {evals.length > 0 && (
        <SimpleGrid
          cols={{ base: 1, sm: Math.min(2, evals.length), xl: Math.min(3, evals.length) }}
          spacing="md"
        >
          {evals.map((card) => (
            <EvalCard key={card.evalId} card={card} />
          ))}
        </SimpleGrid>
      )}
      {notShown > 0 && (
        <Text size="sm" c="dimmed">
          {plural(notShown, 'eval')} that ran longer ago: see <PageLink to="/evals">all evals</PageLink>.
        </Text>
      )}
      {evals.length === 0 && (
        <Alert color="gray" title="No evals yet">
          What ran so far were single scenarios. <PageLink to="/evals/new">Make an eval</PageLink> of them to
          see here whether the agent gets better or worse.
        </Alert>
      )}
      <NewFailures cards={evals} />
      <Block title="Latest executions" beside={<PageLink to="/executions">All executions</PageLink>}>
        <FiguresTable executions={executions.data} />
      </Block>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Flakiest />
        <Slowest />
      </SimpleGrid>
    </Stack>
  );
}
