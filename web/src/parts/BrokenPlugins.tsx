// Says that plugins could not be loaded, where it matters: no runs are worked on until that is mended.
import { Alert, List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { pluginsQuery } from '../api/server';
import { PageLink } from './links';
import { plural } from './numbers';

export function BrokenPlugins() {
  const plugins = useQuery(pluginsQuery);
  const broken = (plugins.data ?? []).filter((plugin) => plugin.error);
  if (broken.length === 0) return null;
  return (
    <Alert
      variant="outline"
      color="red"
      mb="md"
      icon={<IconAlertTriangle aria-hidden />}
      title={`${plural(broken.length, 'plugin')} could not be loaded`}
    >
      <Text size="sm">
        No runs are worked on until this is mended and the server started again.{' '}
        <PageLink to="/settings" size="sm" underline="always">
          See the settings
        </PageLink>
      </Text>
      <List size="sm" mt={4}>
        {broken.map((plugin) => (
          <List.Item key={plugin.name}>
            <b>{plugin.name}</b>: {lastLine(plugin.error ?? '')}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

/** Of a traceback, the line that says what was wrong. */
function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
