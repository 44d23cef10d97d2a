// Conversations of production, newest first: what came in, and what the monitors made of it.
import { Alert, Button, Table, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconAlertTriangle, IconMessages } from '@tabler/icons-react';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { conversationsQuery } from '../../api/monitors';
import { statusQuery } from '../../api/server';
import { Listing } from '../../editing/Listing';
import { PageLink } from '../../parts/links';
import { RelativeTime } from '../../parts/RelativeTime';
import { useSearchParam } from '../../parts/useSearchParam';
import { type Conversation, Reviews } from './Reviews';

export default function ConversationsPage() {
  const status = useQuery(statusQuery);
  const [text, setText] = useSearchParam('text');
  const [asked] = useDebouncedValue(text.trim(), 250);
  const conversations = useInfiniteQuery({
    ...conversationsQuery(asked),
    placeholderData: keepPreviousData,
  });
  const { data, error, isPending, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = conversations;
  const items = useMemo(() => data?.pages.flatMap((page) => page.items), [data]);
  return (
    <Listing
      title="Production conversations"
      noun="conversation"
      above={[
        <PageLink key="all" to="/monitors">
          Monitors
        </PageLink>,
      ]}
      notice={<IntakeProblem />}
      none="No conversations yet"
      icon={IconMessages}
      why={
        status.data?.intake.enabled
          ? 'Point the OpenTelemetry exporter of your agent at this server; conversations appear as they come in.'
          : 'Telemetry is off: set production.enabled and production.token in the config file.'
      }
      query={{ data: items, error, isPending, refetch }}
      search={[text, setText]}
      narrowest={340}
      columns={[
        'Conversation',
        { head: 'Result', width: '24%' },
        { head: 'Service', width: '16%', visibleFrom: 'sm' },
        { head: 'Turns', width: 80, number: true, visibleFrom: 'sm' },
        { head: 'Last heard of', width: 130, visibleFrom: 'sm' },
      ]}
      row={(one) => <Cells conversation={one} />}
      below={
        hasNextPage && (
          <Button variant="default" mt="sm" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show older ones
          </Button>
        )
      }
    />
  );
}

function Cells({ conversation }: { conversation: Conversation }) {
  return (
    <>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        <PageLink to="/production/$conversationId" params={{ conversationId: conversation.id }} fw={500}>
          {conversation.title || conversation.name}
        </PageLink>
        <Text size="xs" c="dimmed">
          {conversation.name}
        </Text>
      </Table.Td>
      <Table.Td>
        <Reviews conversation={conversation} />
      </Table.Td>
      <Table.Td visibleFrom="sm">{conversation.agent ?? '–'}</Table.Td>
      <Table.Td visibleFrom="sm" ta="right">
        {conversation.turnCount ?? '–'}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <RelativeTime at={conversation.updatedAt} />
      </Table.Td>
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
