// All scenarios, with what became of each the last time it ran.
import { Badge, Group, MultiSelect, Table, Text, VisuallyHidden } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { scenariosQuery } from '../../api/definitions';
import { runsQuery } from '../../api/runs';
import { Listing } from '../../editing/Listing';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOf } from '../../parts/outcome';
import { RelativeTime } from '../../parts/RelativeTime';
import { useSearchParam } from '../../parts/useSearchParam';
import { asStored, type StoredScenario } from './draft';

export default function ScenariosPage() {
  const scenarios = useQuery(scenariosQuery);
  const stored = useMemo(() => scenarios.data?.map(asStored), [scenarios.data]);
  const [tagged, setTagged] = useSearchParam('tags');
  const tags = tagged.split('\n').filter(Boolean);
  const known = useMemo(() => [...new Set(stored?.flatMap((one) => one.tags))].sort(), [stored]);
  return (
    <Listing
      title="Scenarios"
      noun="scenario"
      newAt="/scenarios/new"
      icon={IconMessages}
      why="A scenario is what is tested: a conversation with the agent, and what must hold in it."
      query={{ ...scenarios, data: stored }}
      words={(scenario) => `${scenario.tags.join(' ')} ${scenario.instructions ?? ''}`}
      keep={(scenario) => tags.every((tag) => scenario.tags.includes(tag))}
      filters={
        known.length > 0 && (
          <MultiSelect
            aria-label="Only with these tags"
            placeholder={tags.length > 0 ? undefined : 'All tags'}
            data={known}
            value={tags}
            onChange={(chosen) => setTagged(chosen.join('\n'))}
            w={{ base: '100%', xs: 240 }}
          />
        )
      }
      narrowest={340}
      columns={[
        'Name',
        { head: 'Last result', width: 130 },
        { head: 'Last run', width: 130, visibleFrom: 'sm' },
        { head: 'Changed', width: 130, visibleFrom: 'sm' },
      ]}
      row={(scenario) => (
        <>
          <Table.Td>
            <PageLink to="/scenarios/$scenarioId" params={{ scenarioId: scenario.id }} fw={500}>
              {scenario.name}
            </PageLink>
            <Group gap={6}>
              <Text size="xs" c="dimmed">
                {summary(scenario)}
              </Text>
              {scenario.tags.map((tag) => (
                <Badge key={tag} variant="default" size="xs" fw={500}>
                  {tag}
                </Badge>
              ))}
            </Group>
          </Table.Td>
          <LastRun scenarioId={scenario.id} />
          <Table.Td visibleFrom="sm">
            <RelativeTime at={scenario.updatedAt} />
          </Table.Td>
        </>
      )}
    />
  );
}

function summary({ evaluators, cases, script }: StoredScenario): string {
  const parts = [plural(evaluators.length, 'evaluator')];
  if (script.length > 0) parts.push(plural(script.length, 'scripted turn'));
  if (typeof cases === 'string') parts.push(`cases in ${cases}`);
  else if (cases.length > 0) parts.push(plural(cases.length, 'case'));
  return parts.join(' · ');
}

/** Two cells: what the last run came to, and when that was. */
function LastRun({ scenarioId }: { scenarioId: string }) {
  const { data } = useQuery(runsQuery({ scenarioId, limit: 1 }));
  const run = data?.items[0];
  return (
    <>
      <Table.Td>
        {run && (
          <PageLink to="/runs/$runId" params={{ runId: run.id }}>
            <OutcomeBadge standing={standingOf(run)} />
            <VisuallyHidden> in the last run of {run.scenarioName}</VisuallyHidden>
          </PageLink>
        )}
        {data && !run && (
          <Text size="sm" c="dimmed">
            never ran
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">{run && <RelativeTime at={run.updatedAt} />}</Table.Td>
    </>
  );
}
