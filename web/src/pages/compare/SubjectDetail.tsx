// One subject on both sides: the verdicts, what changed in its definitions, and the two conversations.
import { ActionIcon, Button, Group, Paper, Select, Stack, Text, Title } from '@mantine/core';
import { IconArrowLeft, IconChevronLeft, IconChevronRight } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { Schemas } from '../../api/client';
import { comparedRunsQuery } from '../../api/figures';
import { runQuery } from '../../api/runs';
import { Block } from '../../parts/Block';
import { ErrorState } from '../../parts/ErrorState';
import { Loading } from '../../parts/Loading';
import { PageLink } from '../../parts/links';
import { OutcomeBadge } from '../../parts/OutcomeBadge';
import { standingOf } from '../../parts/outcome';
import { quotesOf, type Run, resultsOf } from '../run/results';
import { Transcript } from '../run/Transcript';
import { rowsOf } from '../run/transcript';
import classes from './Compare.module.css';
import { DefinitionChanges, TurnDifferences, VerdictChanges } from './Differences';
import { Records } from './Records';
import type { Compared, Comparison } from './rows';

const route = getRouteApi('/compare');

interface Props {
  comparison: Comparison;
  row: Compared;
  place: number;
  of: number;
  onStep: (by: 1 | -1) => void;
}

export function SubjectDetail({ comparison, row, place, of, onStep }: Props) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="xs">
        <Group gap="sm" miw={0}>
          <Button
            variant="default"
            leftSection={<IconArrowLeft size={16} aria-hidden />}
            onClick={() => void navigate({ search: { ...search, row: undefined } })}
          >
            All subjects
          </Button>
          <Title order={2} style={{ overflowWrap: 'anywhere' }}>
            {row.subject.label}
          </Title>
          <Text size="sm" c="dimmed">
            {row.category}, {place + 1} of {of}
          </Text>
        </Group>
        <Group gap={4}>
          <Step
            label="Previous (p)"
            icon={IconChevronLeft}
            disabled={place === 0}
            onClick={() => onStep(-1)}
          />
          <Step
            label="Next (n)"
            icon={IconChevronRight}
            disabled={place + 1 >= of}
            onClick={() => onStep(1)}
          />
        </Group>
      </Group>
      {comparison.base.isResultsFile ? (
        <Records comparison={comparison} row={row} />
      ) : (
        <Runs comparison={comparison} row={row} />
      )}
    </Stack>
  );
}

interface StepProps {
  label: string;
  icon: typeof IconChevronLeft;
  disabled: boolean;
  onClick: () => void;
}

function Step({ label, icon: StepIcon, disabled, onClick }: StepProps) {
  return (
    <ActionIcon
      variant="default"
      size={34}
      aria-label={label}
      title={label}
      disabled={disabled}
      onClick={onClick}
    >
      <StepIcon size={17} aria-hidden />
    </ActionIcon>
  );
}

function Runs({ comparison, row }: { comparison: Comparison; row: Compared }) {
  const { baseConnector, candidateConnector } = route.useSearch();
  const { subject } = row;
  const runs = useQuery(
    comparedRunsQuery({
      base: comparison.base.id,
      candidate: comparison.candidate.id,
      scenarioId: subject.scenarioId ?? '',
      caseName: subject.caseName ?? undefined,
      personaId: subject.personaId ?? undefined,
      connectorId: subject.connectorId ?? undefined,
      baseConnector,
      candidateConnector,
    }),
  );
  if (runs.error) return <ErrorState error={runs.error} onRetry={() => void runs.refetch()} />;
  if (!runs.data) return <Loading rows={8} />;
  return <Pair runs={runs.data} />;
}

/** The pair that shows the difference best: one that passed before, one that did not pass now. */
function telling(runs: Schemas['RunSummary'][], passed: boolean): string | null {
  const match = runs.find((run) => (standingOf(run) === 'pass') === passed);
  return (match ?? runs[0])?.id ?? null;
}

/** One of the runs; while another is read, the one before stays. */
function useRun(id: string | null) {
  return useQuery({ ...runQuery(id ?? ''), enabled: id !== null, placeholderData: keepPreviousData });
}

function Pair({ runs }: { runs: Schemas['ComparedRuns'] }) {
  const worse = runs.candidate.some((run) => standingOf(run) !== 'pass');
  const [baseId, setBaseId] = useState(() => telling(runs.base, worse));
  const [candidateId, setCandidateId] = useState(() => telling(runs.candidate, !worse));
  const base = useRun(baseId);
  const candidate = useRun(candidateId);
  const failed = [base, candidate].find((one) => one.error);
  if (failed?.error) return <ErrorState error={failed.error} onRetry={() => void failed.refetch()} />;
  // All parts come at once, so that none moves another.
  if (base.isLoading || candidate.isLoading) return <Loading rows={8} />;
  const both = base.data && candidate.data ? ([base.data, candidate.data] as const) : null;
  return (
    <>
      {both && <VerdictChanges base={both[0]} candidate={both[1]} />}
      <DefinitionChanges changes={runs.definitions} />
      {both && <TurnDifferences base={both[0]} candidate={both[1]} />}
      <Block title="Conversations">
        <div className={classes.sides}>
          <Side name="base" runs={runs.base} value={baseId} onChange={setBaseId} run={base.data} />
          <Side
            name="candidate"
            runs={runs.candidate}
            value={candidateId}
            onChange={setCandidateId}
            run={candidate.data}
          />
        </div>
      </Block>
    </>
  );
}

interface SideProps {
  name: 'base' | 'candidate';
  runs: Schemas['RunSummary'][];
  value: string | null;
  onChange: (id: string | null) => void;
  run: Run | undefined;
}

function Side({ name, runs, value, onChange, run }: SideProps) {
  const title = name === 'base' ? 'Base' : 'Candidate';
  return (
    <section className={classes.side} data-side={name} aria-label={`${title} conversation`}>
      <Group gap="xs" mb="sm" align="center">
        <Text fw={600} size="sm">
          {title}
        </Text>
        {runs.length > 1 && (
          <Select
            aria-label={`Run of the ${name}`}
            size="xs"
            w={190}
            allowDeselect={false}
            data={runs.map((one) => ({
              value: one.id,
              label: `Repetition ${one.repetition}: ${standingOf(one)}`,
            }))}
            value={value}
            onChange={onChange}
          />
        )}
        {run && <OutcomeBadge standing={standingOf(run)} />}
        {run && (
          <PageLink to="/runs/$runId" params={{ runId: run.id }} size="sm">
            Open the run
          </PageLink>
        )}
      </Group>
      {runs.length === 0 && (
        <Paper withBorder p="sm">
          <Text size="sm" c="dimmed">
            The {name} has no run of it.
          </Text>
        </Paper>
      )}
      {run && <Conversation run={run} />}
    </section>
  );
}

function Conversation({ run }: { run: Run }) {
  const rows = useMemo(() => rowsOf(run), [run]);
  const quotes = useMemo(
    () => [
      ...new Set(
        resultsOf(run)
          .flatMap(quotesOf)
          .map((quote) => quote.text),
      ),
    ],
    [run],
  );
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string) =>
    setOpened(
      (before) => new Set(before.has(key) ? [...before].filter((one) => one !== key) : [...before, key]),
    );
  return (
    <Transcript rows={rows} quotes={quotes} current={-1} goTo={null} opened={opened} onToggle={toggle} />
  );
}
