// Scoring a dataset: which records, by which plan, and how much of them.
import { Box, Button, NumberInput, Select, SimpleGrid, Stack, Switch } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../../api/client';
import { invalidate } from '../../api/queries';
import { scoringSourcesQuery, startScoring } from '../../api/scoring';
import { ActionBar } from '../../editing/ActionBar';
import { Section } from '../../editing/Section';
import { inputProblems } from '../../forms/inputProblems';
import { PageLink } from '../../parts/links';
import { ago } from '../../parts/numbers';
import { PageTitle } from '../../parts/PageTitle';
import { UnsavedGuard } from '../../parts/UnsavedGuard';
import { type Dataset, DatasetSection } from './DatasetSection';
import { PlanForm } from './PlanForm';
import { PlanYaml } from './PlanYaml';
import classes from './Scoring.module.css';
import { type PlanEditing, usePlan } from './usePlan';

export default function NewScoringPage() {
  const navigate = useNavigate();
  const [dataset, setDataset] = useState<Dataset | null>(null);
  const [limit, setLimit] = useState<number | null>(null);
  const [skipBad, setSkipBad] = useState(false);
  const plan = usePlan();
  const start = useMutation({
    mutationFn: async () => {
      const halfWritten = inputProblems();
      if (halfWritten.length > 0) throw new Error(halfWritten.join('; '));
      if (!dataset) throw new Error('Choose a dataset first.');
      const records =
        'path' in dataset
          ? { dataset: dataset.path }
          : { upload: { name: dataset.upload.name, text: await dataset.upload.text() } };
      const by = plan.path ? { plan: plan.path } : { planText: plan.text };
      return startScoring({ ...records, ...by, limit, skipBad });
    },
    onSuccess: (scoring) => {
      void invalidate(['scoring']);
      void navigate({
        to: '/scoring/jobs/$scoringId',
        params: { scoringId: scoring.id },
        ignoreBlocker: true,
      });
    },
  });
  const missing = whatIsMissing(dataset, plan);
  return (
    <>
      <PageTitle
        title="Score a dataset"
        above={[
          <PageLink key="all" to="/scoring">
            Scoring
          </PageLink>,
        ]}
      />
      <Stack gap="md">
        <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
          <DatasetSection value={dataset} onChange={setDataset} />
          <HowMuch limit={limit} onLimit={setLimit} skipBad={skipBad} onSkipBad={setSkipBad} />
        </SimpleGrid>
        <PlanChoice plan={plan} />
        <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
          <PlanForm editing={plan} />
          <Box miw={0}>
            <div className={classes.side}>
              <PlanYaml editing={plan} />
            </div>
          </Box>
        </SimpleGrid>
      </Stack>
      <ActionBar
        refused={start.error ? { title: 'Not started', why: problemText(start.error) } : undefined}
        status={missing}
      >
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          disabled={missing !== null}
          loading={start.isPending}
          onClick={() => start.mutate()}
        >
          Start scoring
        </Button>
      </ActionBar>
      <UnsavedGuard unsaved={plan.text !== '' && plan.path === null && !start.isSuccess} />
    </>
  );
}

function whatIsMissing(dataset: Dataset | null, plan: PlanEditing): string | null {
  if (!dataset) return 'Choose a dataset.';
  if (!plan.text) return 'Choose or write a plan.';
  if (plan.checking) return 'Checking the plan.';
  return plan.problems.length > 0 ? 'Mend the plan first.' : null;
}

function problemText(error: Error): string {
  const details = error instanceof ApiError ? error.details : [];
  return details.length > 1
    ? details.map(({ path, message }) => `${path}: ${message}`).join('; ')
    : error.message;
}

type HowMuchProps = {
  limit: number | null;
  onLimit: (limit: number | null) => void;
  skipBad: boolean;
  onSkipBad: (skip: boolean) => void;
};

function HowMuch({ limit, onLimit, skipBad, onSkipBad }: HowMuchProps) {
  return (
    <Section title="How much of it">
      <NumberInput
        label="At most so many records"
        description="The first ones; empty for all of them"
        placeholder="All"
        min={1}
        allowDecimal={false}
        thousandSeparator=","
        value={limit ?? ''}
        onChange={(next) => onLimit(next === '' ? null : Number(next))}
      />
      <Switch
        label="Leave out what cannot be read"
        description="Such records are counted and listed; otherwise the first of them ends the scoring"
        checked={skipBad}
        onChange={(event) => onSkipBad(event.currentTarget.checked)}
      />
    </Section>
  );
}

function PlanChoice({ plan }: { plan: PlanEditing }) {
  const sources = useQuery(scoringSourcesQuery);
  const data = (sources.data?.plans ?? []).map((one) => ({
    value: one.path,
    label: `${one.path} (${ago(one.writtenAt)})`,
  }));
  const [begun, setBegun] = useState<string | null>(null);
  const changed = begun !== null && plan.path === null && plan.text !== '' && !plan.checking;
  return (
    <Section
      title="Plan"
      hint="Criteria, and the evaluators that score them. Begin with a plan of the project, or write one below."
    >
      <Select
        label="Plan of the project"
        description={
          changed
            ? `Changed since: it is scored by what stands below, and ${begun} stays as it is`
            : 'YAML and JSON plans in the project folder, the newest first'
        }
        placeholder={data.length ? 'None: written here' : 'There is none yet'}
        data={data}
        value={begun}
        searchable
        clearable
        maw={620}
        error={plan.failure?.message}
        nothingFoundMessage="Nothing matches"
        onChange={(next) => {
          setBegun(next);
          plan.open(next);
        }}
      />
    </Section>
  );
}
