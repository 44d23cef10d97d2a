// Which two are compared: any two executions, two connectors of one, or two results files of scoring.
import { ActionIcon, Group, Select, type SelectProps } from '@mantine/core';
import { IconArrowsExchange } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schemas } from '../../api/client';
import { connectorsQuery } from '../../api/definitions';
import { executionsQuery } from '../../api/runs';
import { resultsFilesQuery } from '../../api/scoring';
import { origin } from '../../parts/labels';
import { ago } from '../../parts/numbers';
import { resultsName } from '../../parts/resultsName';
import type { CompareSearch } from '../../router';

const route = getRouteApi('/compare');

export function Pickers({ sides }: { sides?: { base: string; candidate: string } }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const executions = useQuery(executionsQuery({ limit: 200 }));
  const files = useQuery(resultsFilesQuery);
  const choose = (patch: Partial<CompareSearch>) =>
    void navigate({ search: { ...search, tab: undefined, row: undefined, ...patch } });
  const base = sides?.base ?? search.base ?? null;
  const candidate = sides?.candidate ?? search.candidate ?? null;
  const items = choices(executions.data?.items ?? [], files.data ?? [], base, candidate);
  return (
    <Group align="flex-end" gap="xs" mb="md">
      <Picker
        label="Base"
        items={items}
        value={base}
        onChange={(value) => choose({ base: value ?? undefined })}
      />
      <ActionIcon
        variant="default"
        size={34}
        aria-label="Swap base and candidate"
        disabled={!base || !candidate}
        onClick={() =>
          choose({
            base: candidate ?? undefined,
            candidate: base ?? undefined,
            baseConnector: search.candidateConnector,
            candidateConnector: search.baseConnector,
          })
        }
      >
        <IconArrowsExchange size={17} aria-hidden />
      </ActionIcon>
      <Picker
        label="Candidate"
        items={items}
        value={candidate}
        onChange={(value) => choose({ candidate: value ?? undefined })}
      />
      {base !== null && base === candidate && <Connectors onChoose={choose} />}
    </Group>
  );
}

interface Choice {
  value: string;
  label: string;
}

/** Executions, then results files; what is chosen and in neither list is named as it stands. */
function choices(
  executions: Schemas['Execution'][],
  files: Schemas['FileEntry'][],
  ...chosen: (string | null)[]
): { group: string; items: Choice[] }[] {
  const listed = executions.map((one) => ({ value: one.id, label: nameOf(one) }));
  const results = files.map((one) => ({
    value: one.path,
    label: `${resultsName(one.path)} (${ago(one.writtenAt)})`,
  }));
  const known = new Set([...listed, ...results].map((one) => one.value));
  const others = [...new Set(chosen)].filter(
    (one): one is string => Boolean(one) && !known.has(one as string),
  );
  return [
    { group: 'Executions', items: [...listed, ...others.map((value) => ({ value, label: value }))] },
    { group: 'Results of scoring', items: results },
  ].filter(({ items }) => items.length > 0);
}

type PickerProps = Pick<SelectProps, 'label' | 'value' | 'onChange'> & {
  items: { group: string; items: Choice[] }[];
};

function Picker({ items, value, ...props }: PickerProps) {
  return (
    <Select
      {...props}
      data={items}
      value={value ?? null}
      searchable
      allowDeselect={false}
      placeholder="Choose an execution or results"
      nothingFoundMessage="Nothing matches"
      w={{ base: '100%', xs: 'auto' }}
      flex={{ xs: '1 1 300px' }}
      maw={{ xs: 480 }}
    />
  );
}

export function nameOf(execution: Schemas['Execution']): string {
  const { branch, commit } = origin(execution.labels);
  const { passed, failed, errored } = execution.counts;
  const parts = [execution.evalName ?? 'Single run', ago(execution.createdAt), branch, commit];
  return `${parts.filter(Boolean).join(' · ')} (${passed} of ${passed + failed + errored})`;
}

function Connectors({ onChoose }: { onChoose: (patch: Partial<CompareSearch>) => void }) {
  const search = route.useSearch();
  const connectors = useQuery(connectorsQuery);
  const data = (connectors.data ?? []).map((one) => ({ value: one.id, label: one.name }));
  return (
    <>
      <Select
        label="Connector of the base"
        data={data}
        value={search.baseConnector ?? null}
        onChange={(value) => onChoose({ baseConnector: value ?? undefined })}
      />
      <Select
        label="Connector of the candidate"
        data={data}
        value={search.candidateConnector ?? null}
        onChange={(value) => onChoose({ candidateConnector: value ?? undefined })}
      />
    </>
  );
}
