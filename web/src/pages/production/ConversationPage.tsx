// One conversation of production, as its spans tell it now.
import { Alert, Group, Paper, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Schemas } from '../../api/client';
import { conversationQuery } from '../../api/monitors';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { count, plural } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { RelativeTime } from '../../parts/RelativeTime';
import type { Turn } from '../run/results';
import { Transcript } from '../run/Transcript';
import { type Message, rowsOf } from '../run/transcript';
import { Reviews } from './Reviews';

const route = getRouteApi('/production/$conversationId');
const NOTHING: ReadonlySet<string> = new Set();

export default function ConversationPage() {
  const { conversationId } = route.useParams();
  const conversation = useQuery(conversationQuery(conversationId));
  const rows = useMemo(
    () => (conversation.data ? rowsOfConversation(conversation.data) : []),
    [conversation.data],
  );
  if (conversation.error) {
    return <ErrorState error={conversation.error} onRetry={() => void conversation.refetch()} />;
  }
  if (!conversation.data) return <Loading />;
  const { title, name, error } = conversation.data;
  return (
    <>
      <PageTitle
        title={title || name}
        above={[
          <PageLink key="monitors" to="/monitors">
            Monitors
          </PageLink>,
          <PageLink key="all" to="/production">
            Production
          </PageLink>,
        ]}
      />
      <Stack>
        <Facts conversation={conversation.data} />
        {error && (
          <Alert color="red" icon={<IconAlertTriangle aria-hidden />} title="It broke off, or is not whole">
            {error}
          </Alert>
        )}
        <section aria-label="Conversation">
          <Transcript
            rows={rows}
            quotes={[]}
            current={-1}
            goTo={null}
            opened={NOTHING}
            onToggle={() => undefined}
          />
        </section>
      </Stack>
    </>
  );
}

function Facts({ conversation }: { conversation: Schemas['ConversationDetail'] }) {
  const { name, agent, updatedAt, spans, lateSpans, refusedSpans, revision } = conversation;
  const counts = [
    plural(spans, 'span'),
    lateSpans > 0 && `${count(lateSpans)} came late`,
    refusedSpans > 0 && `${count(refusedSpans)} refused`,
    revision > 1 && `revision ${revision}`,
  ];
  return (
    <Paper withBorder p="sm" component="section" aria-label="About this conversation">
      <Group gap="lg">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {name}
        </Text>
        {agent && <Text size="sm">{agent}</Text>}
        <Text size="sm" c="dimmed">
          {counts.filter(Boolean).join(', ')}
        </Text>
        <Text size="sm" c="dimmed" component="span">
          Last heard of <RelativeTime at={updatedAt} />
        </Text>
        <Reviews conversation={conversation} />
      </Group>
    </Paper>
  );
}

/** The rows of a run that was not judged: messages by turn, with latency and tokens. */
function rowsOfConversation({ seeds, turns }: Schemas['ConversationDetail']) {
  const messages: Message[] = [];
  const marks: Turn[] = [];
  const add = (number: number, said: unknown[], more: object) => {
    messages.push(...(said as Message[]));
    marks.push({
      turn: number,
      messageCount: said.length,
      evaluatorResults: [],
      latencyMs: null,
      ...more,
    } as never);
  };
  if (seeds.length > 0) add(0, seeds, {});
  for (const { number, userMessage, messages: said, latencyMs, tokensUsage } of turns) {
    add(number, userMessage ? [userMessage, ...said] : said, { latencyMs, tokensUsage });
  }
  return rowsOf({ messages, turns: marks });
}
