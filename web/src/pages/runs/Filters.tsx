// What the runs are narrowed to. Every part of it stands in the address, so that a link shows the same.
import { Button, Collapse, Group, NumberInput, Select, SimpleGrid, TextInput } from '@mantine/core';
import { useDebouncedCallback, useDisclosure } from '@mantine/hooks';
import { IconFilter, IconSearch, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { connectorsQuery, scenariosQuery } from '../../api/definitions';
import { OUTCOME_STYLES } from '../../parts/OutcomeBadge';
import { faultText } from '../../parts/outcome';
import { FAULTS, OUTCOMES, type RunsFilter, VERDICTS } from './filter';

interface Props {
  filter: RunsFilter;
  onChange: (filter: RunsFilter) => void;
}

const TYPING_MS = 300;

export function Filters({ filter, onChange }: Props) {
  const deep = [filter.label, filter.tag, filter.fault, filter.evaluator, filter.metric].some(Boolean);
  const [opened, more] = useDisclosure(deep);
  const narrowed = Object.values(filter).some((value) => value !== undefined);
  const set = (part: Partial<RunsFilter>) => onChange({ ...filter, ...part });
  return (
    <search aria-label="Filter runs">
      <Group gap="xs" align="flex-end" mb="xs">
        <Typed
          label="What was said"
          placeholder="Text in the conversation"
          value={filter.said}
          onType={(said) => set({ said })}
          searching
        />
        <Outcome filter={filter} set={set} />
        <Definitions filter={filter} set={set} />
        <Day label="From" value={filter.since} onPick={(since) => set({ since })} />
        <Day label="To" value={filter.until} onPick={(until) => set({ until })} />
        <Button
          variant="default"
          size="xs"
          leftSection={<IconFilter size={14} aria-hidden />}
          aria-expanded={opened}
          onClick={more.toggle}
        >
          More filters
        </Button>
        {narrowed && (
          <Button
            variant="subtle"
            size="xs"
            leftSection={<IconX size={14} aria-hidden />}
            onClick={() => onChange({})}
          >
            Clear
          </Button>
        )}
      </Group>
      <Collapse expanded={opened} keepMounted={false}>
        <More filter={filter} set={set} />
      </Collapse>
    </search>
  );
}

interface PartProps {
  filter: RunsFilter;
  set: (part: Partial<RunsFilter>) => void;
}

function Outcome({ filter, set }: PartProps) {
  return (
    <Select
      label="Result"
      size="xs"
      w={110}
      clearable
      placeholder="Any"
      data={OUTCOMES.map((value) => ({ value, label: OUTCOME_STYLES[value].word }))}
      value={filter.outcome ?? null}
      onChange={(outcome) => set({ outcome: (outcome ?? undefined) as RunsFilter['outcome'] })}
    />
  );
}

function Definitions({ filter, set }: PartProps) {
  const scenarios = useQuery(scenariosQuery);
  const connectors = useQuery(connectorsQuery);
  const named = (items: { id: string; name: string }[] | undefined) =>
    (items ?? []).map(({ id, name }) => ({ value: id, label: name }));
  return (
    <>
      <Select
        label="Scenario"
        size="xs"
        w={170}
        clearable
        searchable
        placeholder="Any"
        data={named(scenarios.data)}
        value={filter.scenario ?? null}
        onChange={(scenario) => set({ scenario: scenario ?? undefined })}
      />
      <Select
        label="Connector"
        size="xs"
        w={150}
        clearable
        searchable
        placeholder="Any"
        data={named(connectors.data)}
        value={filter.connector ?? null}
        onChange={(connector) => set({ connector: connector ?? undefined })}
      />
    </>
  );
}

function More({ filter, set }: PartProps) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 4, lg: 8 }} spacing="xs" mb="sm">
      <Typed
        label="Label"
        placeholder="branch=main"
        value={filter.label}
        onType={(label) => set({ label })}
      />
      <Typed label="Tag" placeholder="smoke" value={filter.tag} onType={(tag) => set({ tag })} />
      <Select
        label="Whose fault"
        size="xs"
        clearable
        placeholder="Any"
        data={FAULTS.map((value) => ({ value, label: faultText(value) }))}
        value={filter.fault ?? null}
        onChange={(fault) => set({ fault: (fault ?? undefined) as RunsFilter['fault'] })}
      />
      <Typed
        label="Evaluator"
        placeholder="Its name"
        value={filter.evaluator}
        onType={(evaluator) => set({ evaluator })}
      />
      <Select
        label="It found"
        size="xs"
        clearable
        placeholder="Anything"
        disabled={!filter.evaluator}
        data={VERDICTS.map((value) => ({ value, label: OUTCOME_STYLES[value].word }))}
        value={filter.verdict ?? null}
        onChange={(verdict) => set({ verdict: (verdict ?? undefined) as RunsFilter['verdict'] })}
      />
      <Typed
        label="Metric"
        placeholder="latency"
        value={filter.metric}
        onType={(metric) => set({ metric })}
      />
      <Limit label="At least" filter={filter} value={filter.min} onType={(min) => set({ min })} />
      <Limit label="At most" filter={filter} value={filter.max} onType={(max) => set({ max })} />
    </SimpleGrid>
  );
}

interface LimitProps {
  label: string;
  filter: RunsFilter;
  value?: number;
  onType: (value?: number) => void;
}

function Limit({ label, filter, value, onType }: LimitProps) {
  return (
    <NumberInput
      label={label}
      size="xs"
      disabled={!filter.metric}
      value={value ?? ''}
      onChange={(next) => onType(next === '' ? undefined : Number(next))}
    />
  );
}

function Day({ label, value, onPick }: { label: string; value?: string; onPick: (day?: string) => void }) {
  return (
    <TextInput
      type="date"
      label={label}
      size="xs"
      value={value ?? ''}
      onChange={(event) => onPick(event.currentTarget.value || undefined)}
    />
  );
}

interface TypedProps {
  label: string;
  placeholder: string;
  value?: string;
  onType: (text?: string) => void;
  searching?: boolean;
}

/** A text that narrows the list once the typing pauses. */
function Typed({ label, placeholder, value, onType, searching }: TypedProps) {
  const [text, setText] = useState(value ?? '');
  const tell = useDebouncedCallback((next: string) => onType(next.trim() || undefined), TYPING_MS);
  useEffect(() => setText(value ?? ''), [value]);
  return (
    <TextInput
      label={label}
      size="xs"
      placeholder={placeholder}
      leftSection={searching && <IconSearch size={14} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value);
      }}
    />
  );
}
