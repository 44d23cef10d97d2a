// The alarms of a monitor, with the conversations behind each.
import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client';
import { acknowledgeAlarm, alarmsQuery } from '../../api/monitors';
import { invalidate } from '../../api/queries';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { RelativeTime } from '../../parts/RelativeTime';

const SHOWN = 10;

export function Alarms({ monitorId }: { monitorId: string }) {
  const alarms = useQuery(alarmsQuery(monitorId));
  if (alarms.error) return <ErrorState error={alarms.error} onRetry={() => void alarms.refetch()} />;
  if (!alarms.data) return <Loading rows={2} />;
  if (alarms.data.items.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No alarm was raised.
      </Text>
    );
  }
  return (
    <Stack gap="sm">
      {alarms.data.items.map((alarm) => (
        <AlarmView key={alarm.id} alarm={alarm} />
      ))}
    </Stack>
  );
}

function AlarmView({ alarm }: { alarm: Schemas['Alarm'] }) {
  const acknowledge = useMutation({
    mutationFn: () => acknowledgeAlarm(alarm.id),
    onSuccess: () => invalidate(['monitors', alarm.monitorId]),
  });
  return (
    <Stack gap={4}>
      <Group gap="xs">
        <Badge variant="light" color={alarm.endedAt ? 'gray' : 'red'}>
          {alarm.endedAt ? 'Over' : 'Open'}
        </Badge>
        <RelativeTime at={alarm.createdAt} />
        {alarm.delivery !== 'none' && (
          <Text size="xs" c="dimmed">
            Webhook {alarm.delivery}
            {alarm.deliveryError ? `: ${alarm.deliveryError}` : ''}
          </Text>
        )}
        {alarm.acknowledgedAt ? (
          <Text size="xs" c="dimmed">
            Acknowledged
          </Text>
        ) : (
          <Button
            size="compact-xs"
            variant="default"
            loading={acknowledge.isPending}
            onClick={() => acknowledge.mutate()}
          >
            Acknowledge
          </Button>
        )}
      </Group>
      <Text size="sm">{alarm.text}</Text>
      <Group gap="xs">
        {alarm.runIds.slice(0, SHOWN).map((id, place) => (
          <PageLink key={id} to="/runs/$runId" params={{ runId: id }} size="sm">
            Conversation {place + 1}
          </PageLink>
        ))}
      </Group>
    </Stack>
  );
}
