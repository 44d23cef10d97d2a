// Asks the agent something small: is it there, how fast, and what does it say?
import { Alert, Button, Group, Text } from '@mantine/core';
import { IconCircleCheck, IconCircleX, IconPlugConnected } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { testConnector } from '../../api/definitions';
import { Section } from '../../editing/Section';
import { ErrorState } from '../../parts/ErrorState';
import { duration } from '../../parts/numbers';

export function ConnectorTester({ id, unsaved }: { id: string; unsaved: boolean }) {
  const test = useMutation({ mutationFn: () => testConnector(id) });
  return (
    <Section title="Test" hint="Calls the agent once, with the connector as it was saved.">
      <Group>
        <Button
          variant="default"
          leftSection={<IconPlugConnected size={16} />}
          loading={test.isPending}
          disabled={unsaved}
          onClick={() => test.mutate()}
        >
          Test
        </Button>
        {unsaved && (
          <Text size="sm" c="dimmed">
            Save first.
          </Text>
        )}
      </Group>
      <div aria-live="polite">
        {test.error && <ErrorState error={test.error} />}
        {test.data && !test.isPending && <Found {...test.data} />}
      </div>
    </Section>
  );
}

type FoundProps = { success: boolean; latencyMs: number; response: string | null; error: string | null };

function Found({ success, latencyMs, response, error }: FoundProps) {
  return (
    <Alert
      color={success ? 'teal' : 'red'}
      icon={success ? <IconCircleCheck aria-hidden /> : <IconCircleX aria-hidden />}
      title={
        success
          ? `The agent answered in ${duration(latencyMs)}`
          : `The agent did not answer (${duration(latencyMs)})`
      }
    >
      <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {success ? response : error}
      </Text>
    </Alert>
  );
}
