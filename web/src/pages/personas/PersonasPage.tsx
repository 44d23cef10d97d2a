// All personas.
import { Table, Text } from '@mantine/core';
import { IconUsers } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { personasQuery } from '../../api/definitions';
import { Listing } from '../../editing/Listing';
import { PageLink } from '../../parts/links';
import { RelativeTime } from '../../parts/RelativeTime';

export default function PersonasPage() {
  const personas = useQuery(personasQuery);
  return (
    <Listing
      title="Personas"
      noun="persona"
      newAt="/personas/new"
      icon={IconUsers}
      why="A persona is who the simulated user is: how they speak, what they know and what they are after."
      query={personas}
      words={(persona) => persona.description ?? ''}
      narrowest={340}
      columns={['Name', 'Description', { head: 'Changed', width: 130, visibleFrom: 'sm' }]}
      row={(persona) => (
        <>
          <Table.Td>
            <PageLink to="/personas/$personaId" params={{ personaId: persona.id }} fw={500}>
              {persona.name}
            </PageLink>
          </Table.Td>
          <Table.Td>
            <Text size="sm" lineClamp={2}>
              {persona.description ?? '–'}
            </Text>
          </Table.Td>
          <Table.Td visibleFrom="sm">
            <RelativeTime at={persona.updatedAt} />
          </Table.Td>
        </>
      )}
    />
  );
}
