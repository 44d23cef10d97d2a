// Which runs are shown. Kept in the address, so that a link shows the same.
import { Chip, Group, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { count } from '../../parts/numbers';
import { OUTCOME_STYLES } from '../../parts/OutcomeBadge';
import { GLOSSARY } from '../../parts/Tip';
import { RUN_CHOICES, type RunChoice } from '../../router';
import type { RunFilter, Summary } from './runs';

const WORDS: Record<RunChoice, string> = {
  all: 'All',
  pass: OUTCOME_STYLES.pass.word,
  fail: OUTCOME_STYLES.fail.word,
  error: OUTCOME_STYLES.error.word,
  unasserted: OUTCOME_STYLES.unasserted.word,
  flaky: 'Flaky',
  waiting: 'Waiting',
};

/** What a word of the choice means, where it does not speak for itself */
const MEANINGS: Partial<Record<RunChoice, string>> = {
  unasserted: GLOSSARY.unasserted,
  flaky: GLOSSARY.flaky,
  waiting: 'Queued or running.',
};

interface Props {
  filter: RunFilter;
  summary: Summary;
  onChange: (filter: RunFilter) => void;
}

export function Filters({ filter, summary, onChange }: Props) {
  const { counts } = summary;
  const numbers: Record<RunChoice, number> = {
    all: counts.total,
    pass: counts.passed,
    fail: counts.failed,
    error: counts.errored,
    unasserted: counts.unasserted,
    flaky: summary.flakyRuns,
    waiting: counts.queued + counts.running,
  };
  return (
    <Group gap="xs">
      <Chip.Group
        value={filter.show ?? 'all'}
        onChange={(show) => onChange({ ...filter, show: show as RunChoice })}
      >
        <Group gap={6} role="group" aria-label="Show runs by outcome">
          {RUN_CHOICES.map((choice) => (
            <Chip
              key={choice}
              value={choice}
              size="xs"
              variant="outline"
              wrapperProps={{ title: MEANINGS[choice] }}
            >
              {WORDS[choice]} {count(numbers[choice])}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      <TextInput
        aria-label="Search runs"
        placeholder="Scenario, connector, reason"
        size="xs"
        leftSection={<IconSearch size={14} aria-hidden />}
        value={filter.text ?? ''}
        onChange={(event) => onChange({ ...filter, text: event.currentTarget.value || undefined })}
      />
      {filter.scenario && (
        <Chip checked size="xs" onChange={() => onChange({ ...filter, scenario: undefined })}>
          One scenario only
        </Chip>
      )}
    </Group>
  );
}
