// All monitors: how each stands, and its rate of the last 30 days.
import { Badge, Table, Text } from '@mantine/core';
import { IconHeartRateMonitor, IconMessages } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { monitorSeriesQuery, monitorsQuery, type StoredMonitor } from '../../api/monitors';
import { Listing } from '../../editing/Listing';
import { LinkButton, PageLink } from '../../parts/links';
import { percent } from '../../parts/numbers';
import { STANDINGS } from './standings';

export default function MonitorsPage() {
  const monitors = useQuery(monitorsQuery);
  return (
    <Listing
      title="Monitors"
      noun="monitor"
      newAt="/monitors/new"
      icon={IconHeartRateMonitor}
      why="A monitor reviews a sample of the conversations your agent has in production, and tells you when its pass rate leaves its band."
      query={monitors}
      words={(monitor) => monitor.description ?? ''}
      columns={['Name', 'Standing', 'Last 30 days', 'Open alarms', 'Description']}
      row={(monitor) => <Row monitor={monitor} />}
      ways={
        <LinkButton to="/production" variant="default" leftSection={<IconMessages size={16} aria-hidden />}>
          Production conversations
        </LinkButton>
      }
    />
  );
}

function Row({ monitor }: { monitor: StoredMonitor }) {
  const series = useQuery(monitorSeriesQuery(monitor.id));
  const rate = series.data?.total.rate;
  const standing = series.data && STANDINGS[series.data.standing];
  return (
    <>
      <Table.Td>
        <PageLink to="/monitors/$monitorId" params={{ monitorId: monitor.id }} fw={500}>
          {monitor.name}
        </PageLink>
      </Table.Td>
      <Table.Td>
        {standing && (
          <Badge variant="light" color={standing.color} miw="max-content">
            {standing.label}
          </Badge>
        )}
      </Table.Td>
      <Table.Td>{rate?.of ? `${percent(rate.rate)} of ${rate.of}` : '–'}</Table.Td>
      <Table.Td>{series.data?.alarms.length ?? '–'}</Table.Td>
      <Table.Td>
        <Text size="sm" lineClamp={2}>
          {monitor.description ?? '–'}
        </Text>
      </Table.Td>
    </>
  );
}
