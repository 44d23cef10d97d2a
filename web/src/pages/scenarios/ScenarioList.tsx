// Scenarios as rows. Only those in view are in the document, however many there are.
import { Badge, Group, Text, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState } from 'react';
import { runsQuery } from '../../api/queries';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOf } from '../../parts/outcome';
import { RelativeTime } from '../../parts/RelativeTime';
import type { StoredScenario } from './draft';
import classes from './Scenarios.module.css';

export function ScenarioList({ scenarios }: { scenarios: StoredScenario[] }) {
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(list.current?.offsetTop ?? 0), []);
  const virtual = useWindowVirtualizer({
    count: scenarios.length,
    estimateSize: () => 62,
    getItemKey: (index) => scenarios[index]?.id ?? index,
    overscan: 8,
    scrollMargin: top,
  });
  return (
    <ul ref={list} className={classes.list} style={{ height: virtual.getTotalSize() }}>
      {virtual.getVirtualItems().map((item) => {
        const scenario = scenarios[item.index];
        return (
          scenario && (
            <li
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              className={classes.row}
              style={{ transform: `translateY(${item.start - top}px)` }}
            >
              <Row scenario={scenario} />
            </li>
          )
        );
      })}
    </ul>
  );
}

function Row({ scenario }: { scenario: StoredScenario }) {
  return (
    <div className={classes.columns}>
      <div className={classes.name}>
        <PageLink to="/scenarios/$scenarioId" params={{ scenarioId: scenario.id }} fw={500}>
          {scenario.name}
        </PageLink>
        <Group gap={6} mt={2}>
          <Text size="xs" c="dimmed">
            {summary(scenario)}
          </Text>
          {scenario.tags.map((tag) => (
            <Badge key={tag} variant="default" size="xs" tt="none" fw={500}>
              {tag}
            </Badge>
          ))}
        </Group>
      </div>
      <LastOutcome scenarioId={scenario.id} />
    </div>
  );
}

function summary({ evaluators, cases, script }: StoredScenario): string {
  const parts = [plural(evaluators.length, 'evaluator')];
  if (script.length > 0) parts.push(plural(script.length, 'scripted turn'));
  if (typeof cases === 'string') parts.push(`cases in ${cases}`);
  else if (cases.length > 0) parts.push(plural(cases.length, 'case'));
  return parts.join(' · ');
}

function LastOutcome({ scenarioId }: { scenarioId: string }) {
  const { data } = useQuery(runsQuery({ scenarioId, limit: 1 }));
  const run = data?.items[0];
  if (!run) {
    return (
      <Text size="sm" c="dimmed" className={classes.outcome}>
        {data ? 'Never ran' : ''}
      </Text>
    );
  }
  return (
    <Group gap="xs" className={classes.outcome} wrap="nowrap">
      <PageLink to="/runs/$runId" params={{ runId: run.id }}>
        <OutcomeBadge standing={standingOf(run)} />
        <VisuallyHidden> in the last run of {run.scenarioName}</VisuallyHidden>
      </PageLink>
      <RelativeTime at={run.updatedAt} />
    </Group>
  );
}
