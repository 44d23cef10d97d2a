// The scenario as a file has it, to be kept beside the agent's code.
import { Button, Code, CopyButton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { scenarioYamlQuery } from '../../api/definitions';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';

export function ScenarioYaml({ scenarioId, unsaved }: { scenarioId: string; unsaved: boolean }) {
  const yaml = useQuery(scenarioYamlQuery(scenarioId));
  if (yaml.error) return <ErrorState error={yaml.error} onRetry={() => void yaml.refetch()} />;
  if (!yaml.data) return <Loading rows={8} />;
  const { text } = yaml.data;
  return (
    <Block
      title="YAML"
      hint="Keep it in a file of the project and bring it back with: evalstudio apply FILE"
      beside={
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button variant="default" size="xs" onClick={copy}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      }
    >
      {unsaved && (
        <Text size="sm" c="dimmed" mb="xs">
          As it was last saved; your changes are not in it yet.
        </Text>
      )}
      <Code block tabIndex={0} aria-label="YAML of the scenario" mah="70vh" style={{ overflow: 'auto' }}>
        {text}
      </Code>
    </Block>
  );
}
