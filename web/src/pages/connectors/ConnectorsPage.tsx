// All connectors.
import { Table, Text } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { connectorsQuery, connectorTypesQuery } from '../../api/definitions';
import { Listing } from '../../editing/Listing';
import { PageLink } from '../../parts/links';
import { RelativeTime } from '../../parts/RelativeTime';

export default function ConnectorsPage() {
  const connectors = useQuery(connectorsQuery);
  const types = useQuery(connectorTypesQuery);
  const labelOf = (type: string) => types.data?.find((one) => one.type === type)?.label ?? type;
  return (
    <Listing
      title="Connectors"
      noun="connector"
      newAt="/connectors/new"
      icon={IconPlugConnected}
      why="A connector is how one agent is reached: over HTTP, through a provider, or as a Python function."
      query={connectors}
      words={(connector) => `${labelOf(connector.type)} ${connector.baseUrl ?? ''}`}
      narrowest={340}
      columns={[
        'Name',
        'Type',
        { head: 'Address', visibleFrom: 'sm' },
        { head: 'Changed', width: 130, visibleFrom: 'sm' },
      ]}
      row={(connector) => (
        <>
          <Table.Td>
            <PageLink to="/connectors/$connectorId" params={{ connectorId: connector.id }} fw={500}>
              {connector.name}
            </PageLink>
          </Table.Td>
          <Table.Td>{labelOf(connector.type)}</Table.Td>
          <Table.Td visibleFrom="sm">
            <Text size="sm" ff={connector.baseUrl ? 'monospace' : undefined} lineClamp={1}>
              {connector.baseUrl ?? '–'}
            </Text>
          </Table.Td>
          <Table.Td visibleFrom="sm">
            <RelativeTime at={connector.updatedAt} />
          </Table.Td>
        </>
      )}
    />
  );
}
