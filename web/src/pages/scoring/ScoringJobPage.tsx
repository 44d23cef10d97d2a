// One scoring of the server: how far it is, what ended it, and what it came to.
import { Alert, Button, Group, List, Progress, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconBan, IconTrash } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { invalidate } from '../../api/queries';
import { cancelScoring, deleteScoring, scoringQuery } from '../../api/scoring';
import { Block } from '../../parts/Block';
import { ConfirmDelete } from '../../parts/ConfirmDelete';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { notify, notifyProblem } from '../../parts/notifications';
import { count, plural } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { RelativeTime } from '../../parts/RelativeTime';
import { useSearchParam } from '../../parts/useSearchParam';
import { CompareWith, Results } from './Results';
import { ScoringStatus } from './ScoringStatus';

type Scoring = Schemas['Scoring'];
const route = getRouteApi('/scoring/jobs/$scoringId');

export default function ScoringJobPage() {
  const { scoringId } = route.useParams();
  const scoring = useQuery(scoringQuery(scoringId));
  const [outcome, setOutcome] = useSearchParam('outcome');
  const above = [
    <PageLink key="all" to="/scoring">
      Scoring
    </PageLink>,
  ];
  if (scoring.error) {
    return (
      <>
        <PageTitle title="Scoring" above={above} />
        <ErrorState error={scoring.error} onRetry={() => void scoring.refetch()} />
      </>
    );
  }
  if (!scoring.data) return <Loading rows={8} />;
  const one = scoring.data;
  const over = one.status !== 'running';
  return (
    <>
      <PageTitle
        title={one.dataset}
        above={above}
        beside={<ScoringStatus scoring={one} />}
        actions={
          <>
            {over && one.records > 0 && <CompareWith path={one.results} />}
            <Actions scoring={one} />
          </>
        }
      />
      <Stack gap="md">
        <About scoring={one} />
        {!over && <UnderWay scoring={one} />}
        {over && one.records > 0 && <Results path={one.results} outcome={outcome} onOutcome={setOutcome} />}
      </Stack>
    </>
  );
}

function About({ scoring }: { scoring: Scoring }) {
  return (
    <>
      <Text size="sm" c="dimmed" component="div" style={{ overflowWrap: 'anywhere' }}>
        Scored by {scoring.planCopy ?? scoring.plan}, <RelativeTime at={scoring.startedAt} size="sm" />
        {scoring.records > 0 && <> · results in {scoring.results}</>}
      </Text>
      {scoring.problems.length > 0 && (
        <Told title="It could not be scored" color="red" texts={scoring.problems} />
      )}
      {scoring.status === 'cancelled' && (
        <Told
          title="Cancelled"
          color="gray"
          texts={[`${plural(scoring.records, 'record')} had been scored until then.`]}
        />
      )}
      {scoring.status === 'interrupted' && (
        <Told
          title="Interrupted"
          color="orange"
          texts={['The server ended before the scoring did. Start it again to score all records.']}
        />
      )}
      {scoring.remarks.length > 0 && (
        <Told
          title={scoring.standing === 'missed' ? 'Not reached' : 'Not decided'}
          color={scoring.standing === 'missed' ? 'red' : 'orange'}
          texts={scoring.remarks}
        />
      )}
      {scoring.bad > 0 && scoring.status !== 'failed' && (
        <Told
          title={`${plural(scoring.bad, 'record')} could not be read`}
          color="orange"
          texts={scoring.leftOut}
        />
      )}
    </>
  );
}

function Told({ title, color, texts }: { title: string; color: string; texts: string[] }) {
  return (
    <Alert color={color} icon={<IconAlertTriangle aria-hidden />} title={title}>
      <List size="sm" listStyleType="none" style={{ overflowWrap: 'anywhere' }}>
        {texts.map((text) => (
          <List.Item key={text}>{text}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

function UnderWay({ scoring }: { scoring: Scoring }) {
  return (
    <Block title="Under way" hint="It goes on when this page is left.">
      <Progress value={100 * scoring.share} animated aria-label="How much of the dataset is scored" />
      <Text size="sm" mt="xs" role="status">
        {scoring.records > 0 ? `${count(scoring.records)} records scored` : 'Starting'}
        {scoring.bad > 0 && `, ${count(scoring.bad)} could not be read`}
      </Text>
    </Block>
  );
}

function Actions({ scoring }: { scoring: Scoring }) {
  const navigate = useNavigate();
  const [confirming, setConfirming] = useState(false);
  const cancel = useMutation({
    mutationFn: () => cancelScoring(scoring.id),
    onSettled: () => invalidate(['scoring']),
    onError: notifyProblem,
  });
  if (scoring.status === 'running') {
    return (
      <Button
        variant="default"
        leftSection={<IconBan size={16} />}
        loading={cancel.isPending}
        onClick={() => cancel.mutate()}
      >
        Cancel
      </Button>
    );
  }
  return (
    <Group gap="xs">
      <Button variant="default" leftSection={<IconTrash size={16} />} onClick={() => setConfirming(true)}>
        Delete
      </Button>
      <ConfirmDelete
        opened={confirming}
        onClose={() => setConfirming(false)}
        what={`scoring of "${scoring.dataset}"`}
        consequence="What was uploaded or written for it and its results go with it. This cannot be undone."
        onDelete={() => deleteScoring(scoring.id)}
        onDeleted={() => {
          void invalidate(['scoring']);
          notify('Deleted');
          void navigate({ to: '/scoring' });
        }}
      />
    </Group>
  );
}
