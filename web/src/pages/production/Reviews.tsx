// What the monitors made of a conversation, each with the run in which it was judged.
import { Group, Text } from '@mantine/core';
import type { Schemas } from '../../api/client';
import { PageLink } from '../../parts/links';
import { OUTCOME_STYLES, OutcomeBadge } from '../../parts/OutcomeBadge';

export type Conversation = Schemas['ConversationSummary'];
type Review = Schemas['ConversationReview'];

export function Reviews({ conversation }: { conversation: Conversation }) {
  const { status, judged, problem, reviews, error } = conversation;
  if (reviews.length > 0) {
    return (
      <Group gap="xs">
        {reviews.map((review) => (
          <OneReview key={review.monitorId} review={review} />
        ))}
      </Group>
    );
  }
  const state =
    status === 'open' ? 'Still open' : judged ? 'No monitor judged it' : 'Waiting for the monitors';
  return (
    <Text size="sm" c={problem || error ? 'red' : 'dimmed'} lineClamp={2}>
      {problem ?? error ?? state}
    </Text>
  );
}

function OneReview({ review }: { review: Review }) {
  const outcome = review.outcome as keyof typeof OUTCOME_STYLES;
  const badge =
    outcome in OUTCOME_STYLES ? <OutcomeBadge standing={outcome} /> : <Text size="sm">Not judged</Text>;
  return (
    <Group gap={4} title={review.reason}>
      {badge}
      {review.runId ? (
        <PageLink to="/runs/$runId" params={{ runId: review.runId }} size="sm">
          {review.monitorName}
        </PageLink>
      ) : (
        <Text size="sm">{review.monitorName}</Text>
      )}
    </Group>
  );
}
