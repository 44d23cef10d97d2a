// Conversations of production, newest first: what came in, and what the monitors made of it.
import { Alert, Button, Group, Table, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconAlertTriangle, IconMessages, IconSearch } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { conversationsQuery } from '../../api/monitors';
import { statusQuery } from '../../api/server';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { PageTitle } from '../../parts/PageTitle';
import { RelativeTime } from '../../parts/RelativeTime';
import { useSearchParam } from '../../parts/useSearchParam';
import { type Conversation, Reviews } from './Reviews';

const COLUMNS = ['Last heard of', 'Conversation', 'Service', 'Turns', 'Result'];

export default function ConversationsPage() {
  const [text, setText] = useSearchParam('text');
  const [asked] = useDebouncedValue(text.trim(), 250);
  const conversations = useInfiniteQuery(conversationsQuery(asked));
  const items = conversations.data?.pages.flatMap((page) => page.items) ?? [];
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = conversations;
  return (
    <>
      <PageTitle
        title="Production"
        above={[
          <PageLink key="all" to="/monitors">
            Monitors
          </PageLink>,
        ]}
      />
      <IntakeProblem />
      <Group mb="sm">
        <TextInput
          aria-label="Search conversations"
          placeholder="Id, first words or service"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          w={{ base: '100%', xs: 320 }}
        />
      </Group>
      {conversations.error && (
        <ErrorState error={conversations.error} onRetry={() => void conversations.refetch()} />
      )}
      {conversations.isPending && <Loading rows={8} />}
      {conversations.data && items.length === 0 && <Nothing narrowed={asked !== ''} />}
      {items.length > 0 && <Rows items={items} />}
      {hasNextPage && (
        <Button variant="default" mt="sm" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more
        </Button>
      )}
    </>
  );
}

function IntakeProblem() {
  const status = useQuery(statusQuery);
  if (!status.data?.problem) return null;
  return (
    <Alert color="red" mb="sm" icon={<IconAlertTriangle aria-hidden />} title="The server cannot do its work">
      {status.data.problem}
    </Alert>
  );
}

function Nothing({ narrowed }: { narrowed: boolean }) {
  const status = useQuery(statusQuery);
  if (narrowed) return <Text c="dimmed">No conversation matches.</Text>;
  return (
    <EmptyState icon={IconMessages} title="No conversations yet">
      {status.data?.intake.enabled
        ? 'Point the OpenTelemetry exporter of your agent at this server; conversations appear as they come in.'
        : 'Telemetry is off: set production.enabled and production.token in the config file.'}
    </EmptyState>
  );
}

function Rows({ items }: { items: Conversation[] }) {
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table aria-label="Conversations" highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {COLUMNS.map((column) => (
              <Table.Th key={column}>{column}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((one) => (
            <Table.Tr key={one.id}>
              <Table.Td>
                <RelativeTime at={one.updatedAt} />
              </Table.Td>
              <Table.Td maw={420}>
                <PageLink to="/production/$conversationId" params={{ conversationId: one.id }} fw={500}>
                  {one.title || one.name}
                </PageLink>
                <Text size="xs" c="dimmed" truncate>
                  {one.name}
                </Text>
              </Table.Td>
              <Table.Td>{one.agent ?? '–'}</Table.Td>
              <Table.Td>{one.turnCount ?? '–'}</Table.Td>
              <Table.Td>
                <Reviews conversation={one} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
