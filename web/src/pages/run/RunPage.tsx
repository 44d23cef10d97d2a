// A run: the conversation on the left, what the evaluators found on the right.
import { Alert, Group, Kbd, Stack, Text, Title } from '@mantine/core';
import { IconClock } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { memo, useCallback, useDeferredValue, useMemo, useState } from 'react';
import { runQuery } from '../../api/runs';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { Definitions } from './Definitions';
import { Folded } from './Folded';
import { JudgePanel } from './JudgePanel';
import { Marks } from './Marks';
import { AssertionsTable, MetricsTable } from './ResultTables';
import classes from './Run.module.css';
import { RunHead } from './RunHead';
import { keyOf, quotesOf, type Result, type Run, resultsOf } from './results';
import { Timing } from './Timing';
import { Transcript } from './Transcript';
import { TranscriptTools } from './TranscriptTools';
import { conversationText, rowsOf } from './transcript';
import { useTranscriptSearch } from './useTranscriptSearch';
import { useTurnKeys } from './useTurnKeys';

const route = getRouteApi('/runs/$runId');

export default function RunPage() {
  const { runId } = route.useParams();
  const { attempt } = route.useSearch();
  const newest = useQuery(runQuery(runId));
  const chosen = useQuery({ ...runQuery(runId, attempt), enabled: attempt !== undefined });
  const query = attempt === undefined ? newest : chosen;
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Loading rows={10} />;
  return (
    <>
      <RunHead run={query.data} attempts={Math.max(newest.data?.attempt ?? 1, query.data.attempt)} />
      <DeferredRun key={`${runId} ${query.data.attempt}`} run={query.data} />
    </>
  );
}

/** The head is shown at once; a long conversation follows in small steps that leave the page responsive. */
function DeferredRun({ run }: { run: Run }) {
  const later = useDeferredValue<Run | null>(run, null);
  return later ? <RunView run={later} /> : <Loading rows={8} />;
}

const RunView = memo(function RunView({ run }: { run: Run }) {
  const rows = useMemo(() => rowsOf(run), [run]);
  const results = useMemo(() => resultsOf(run), [run]);
  const search = useTranscriptSearch(rows);
  const quotes = useMemo(() => quotedIn(results, search.text), [results, search.text]);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set<string>());
  const [plain, setPlain] = useState(false);
  const { current, goTo, go, failures } = useTurnKeys(run);

  const toggleKey = useCallback((key: string) => setOpened((before) => toggled(before, key)), []);
  const toggle = useCallback((result: Result) => toggleKey(keyOf(result)), [toggleKey]);

  return (
    <div className={classes.layout}>
      <section aria-label="Transcript">
        <Group justify="space-between" mb="xs">
          <Title order={2}>Transcript</Title>
          <Keys failures={failures} />
        </Group>
        {rows.length === 0 ? (
          <NothingSaid run={run} />
        ) : (
          <TranscriptTools
            search={search}
            text={() => conversationText(rows)}
            plain={plain}
            onPlain={setPlain}
          />
        )}
        <Transcript
          rows={rows}
          quotes={quotes}
          current={current}
          goTo={goTo}
          found={search.target}
          opened={opened}
          onToggle={toggleKey}
          plain={plain}
        />
      </section>
      <Stack component="aside" aria-label="Results" className={classes.panels} gap="sm" tabIndex={-1}>
        <JudgePanel run={run} results={results} />
        <AssertionsTable results={results} opened={opened} onToggle={toggle} />
        <MetricsTable results={results} opened={opened} onToggle={toggle} />
        <Timing turns={run.turns} onGo={go} />
        <Marks runId={run.id} />
        <RunLog run={run} />
        <Definitions runId={run.id} />
      </Stack>
    </div>
  );
});

/** What is marked in the conversation: what judges quoted, and what is searched for. */
function quotedIn(results: Result[], searched: string): string[] {
  const quotes = results.flatMap(quotesOf).map((quote) => quote.text);
  return [...new Set(searched.trim() ? [...quotes, searched] : quotes)];
}

function toggled(before: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const after = new Set(before);
  if (!after.delete(key)) after.add(key);
  return after;
}

function Keys({ failures }: { failures: number }) {
  return (
    <Text size="xs" c="dimmed" visibleFrom="sm">
      <Kbd size="xs">j</Kbd> <Kbd size="xs">k</Kbd> turns
      {failures > 0 && (
        <>
          {' '}
          <Kbd size="xs">n</Kbd> next failure
        </>
      )}
    </Text>
  );
}

/** What agents and evaluators printed, kept with the run. */
function RunLog({ run }: { run: Run }) {
  const log = (run.output as { log?: unknown } | null)?.log;
  return typeof log === 'string' && log ? <Folded title="Log" text={log} /> : null;
}

function NothingSaid({ run }: { run: Run }) {
  const waiting = run.status === 'queued' || run.status === 'running';
  return (
    <Alert
      color="gray"
      icon={<IconClock aria-hidden />}
      title={waiting ? 'Not started yet' : 'Nothing was said'}
    >
      {waiting
        ? 'Turns appear here as they are finished.'
        : 'The conversation ended before the first message; the reason stands above.'}
    </Alert>
  );
}
