// Which runs are shown. Kept in the address, so that a link shows the same.
import { Chip, Group, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { count } from '../../parts/numbers';
import { SHOWN, type Shown } from '../../router';
import type { Counts, Wanted } from './runs';

const WORDS: Record<Shown, string> = {
  all: 'All',
  pass: 'Pass',
  fail: 'Fail',
  error: 'Error',
  flaky: 'Flaky',
  waiting: 'Waiting',
};

interface Props {
  wanted: Wanted;
  counts: Counts;
  flakyRuns: number;
  onChange: (wanted: Wanted) => void;
}

export function Filters({ wanted, counts, flakyRuns, onChange }: Props) {
  const numbers: Record<Shown, number> = {
    all: counts.total,
    pass: counts.passed,
    fail: counts.failed,
    error: counts.errored,
    flaky: flakyRuns,
    waiting: counts.queued + counts.running,
  };
  return (
    <Group gap="xs" mb="sm">
      <Chip.Group
        value={wanted.show ?? 'all'}
        onChange={(show) => onChange({ ...wanted, show: show as Shown })}
      >
        <Group gap={6} role="group" aria-label="Show runs by outcome">
          {SHOWN.map((shown) => (
            <Chip key={shown} value={shown} size="xs" variant="outline">
              {WORDS[shown]} {count(numbers[shown])}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      <TextInput
        aria-label="Search runs"
        placeholder="Scenario, connector, reason"
        size="xs"
        leftSection={<IconSearch size={14} aria-hidden />}
        value={wanted.text ?? ''}
        onChange={(event) => onChange({ ...wanted, text: event.currentTarget.value || undefined })}
      />
      {wanted.scenario && (
        <Chip checked size="xs" onChange={() => onChange({ ...wanted, scenario: undefined })}>
          One scenario only
        </Chip>
      )}
    </Group>
  );
}
