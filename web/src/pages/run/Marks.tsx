// What people say about a run: whether it was good, and why.
import { Button, Group, List, Paper, Text, Textarea, Title } from '@mantine/core';
import { IconThumbDown, IconThumbUp } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { invalidate } from '../../api/queries';
import { feedbackQuery, giveFeedback } from '../../api/runs';
import { notifyProblem } from '../../parts/notifications';
import { RelativeTime } from '../../parts/RelativeTime';

export function Marks({ runId }: { runId: string }) {
  const feedback = useQuery(feedbackQuery(runId));
  const [comment, setComment] = useState('');
  const mark = useMutation({
    mutationFn: (score: boolean) => giveFeedback({ runId, score, comment: comment.trim() || null }),
    onSuccess: async () => {
      setComment('');
      await invalidate(['feedback', runId]);
    },
    onError: notifyProblem,
  });
  return (
    <Paper withBorder p="xs">
      <Title order={2} size="h4" mb={4}>
        Marks of people
      </Title>
      <List size="sm" spacing={2} mb="xs" listStyleType="none" aria-label="Marks of people">
        {(feedback.data?.items ?? []).map((one) => (
          <List.Item key={one.id}>
            <Mark feedback={one} />
          </List.Item>
        ))}
      </List>
      <Textarea
        label="Why"
        description="Kept with the mark, for whoever reads this run next"
        size="xs"
        autosize
        minRows={1}
        value={comment}
        onChange={(event) => setComment(event.currentTarget.value)}
      />
      <Group gap="xs" mt={6}>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconThumbUp size={14} aria-hidden />}
          loading={mark.isPending}
          onClick={() => mark.mutate(true)}
        >
          Good
        </Button>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconThumbDown size={14} aria-hidden />}
          loading={mark.isPending}
          onClick={() => mark.mutate(false)}
        >
          Bad
        </Button>
      </Group>
    </Paper>
  );
}

function Mark({ feedback }: { feedback: Schemas['Feedback'] }) {
  const { score, comment, author, criterionName, createdAt } = feedback;
  const word = score === true ? 'Good' : score === false ? 'Bad' : String(score ?? '');
  return (
    <Text size="sm" dir="auto">
      {[criterionName, word, comment, author].filter(Boolean).join(' · ')} <RelativeTime at={createdAt} />
    </Text>
  );
}
