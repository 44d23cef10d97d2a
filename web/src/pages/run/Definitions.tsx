// The scenario, persona and connector as they were when this run was queued.
import { Code, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { runDefinitionsQuery } from '../../api/runs';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import classes from './Run.module.css';

export function Definitions({ runId }: { runId: string }) {
  const [opened, setOpened] = useState(false);
  return (
    <details className={classes.folded} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Definitions as they were</summary>
      {opened && <Snapshots runId={runId} />}
    </details>
  );
}

function Snapshots({ runId }: { runId: string }) {
  const definitions = useQuery(runDefinitionsQuery(runId));
  if (definitions.error) return <ErrorState error={definitions.error} />;
  if (!definitions.data) return <Loading rows={3} />;
  const { scenario, persona, connector } = definitions.data;
  return (
    <>
      {Object.entries({ Scenario: scenario, Persona: persona, Connector: connector }).map(
        ([name, definition]) =>
          definition && (
            <div key={name}>
              <Text size="xs" fw={600} mt={6}>
                {name}
              </Text>
              <Code block className={classes.long} tabIndex={0} aria-label={`${name} as it was`}>
                {JSON.stringify(definition, null, 2)}
              </Code>
            </div>
          ),
      )}
    </>
  );
}
