// Goes anywhere by its name: pages, definitions, executions and runs. Opened by Ctrl-K, or its button.
import { Combobox, Group, Kbd, Loader, Modal, ScrollArea, Text, TextInput, useCombobox } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import type { Schemas } from '../api/client';
import { searchQuery } from '../api/figures';
import { matches } from '../editing/Listing';
import { ago } from '../parts/numbers';
import { PLACES } from './Navigation';

type Hit = Schemas['SearchHit'];
interface Entry {
  value: string;
  group: string;
  label: string;
  hint?: string;
  go: () => void;
}

const KINDS: Record<Hit['kind'], { group: string; path: string }> = {
  eval: { group: 'Evals', path: '/evals/' },
  monitor: { group: 'Monitors', path: '/monitors/' },
  scenario: { group: 'Scenarios', path: '/scenarios/' },
  persona: { group: 'Personas', path: '/personas/' },
  connector: { group: 'Connectors', path: '/connectors/' },
  execution: { group: 'Executions', path: '/executions/' },
  run: { group: 'Runs', path: '/runs/' },
};
/** Pages that others lead to. */
const BEYOND = [{ to: '/production', label: 'Production conversations' }] as const;
const ACTIONS = [
  { to: '/scenarios/new', label: 'New scenario' },
  { to: '/evals/new', label: 'New eval' },
  { to: '/connectors/new', label: 'New connector' },
  { to: '/personas/new', label: 'New persona' },
] as const;

export default function Palette({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal.Root opened={opened} onClose={onClose} size="lg" yOffset="12vh" centered={false}>
      <Modal.Overlay />
      <Modal.Content aria-label="Go to">
        <Modal.Body p={0}>
          <Search onClose={onClose} />
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

function Search({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const combobox = useCombobox({ opened: true });
  const { entries, busy } = useEntries(text, onClose);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new list starts at its first entry
  useEffect(() => void combobox.selectFirstOption(), [entries]);
  const groups = [...new Set(entries.map((entry) => entry.group))];
  return (
    <Combobox store={combobox} onOptionSubmit={(value) => entries.find((one) => one.value === value)?.go()}>
      <Combobox.EventsTarget>
        <TextInput
          data-autofocus
          size="md"
          variant="unstyled"
          px="sm"
          aria-label="Search scenarios, evals, runs and pages"
          placeholder="Search scenarios, evals, runs, pages"
          leftSection={<IconSearch size={18} aria-hidden />}
          rightSection={busy ? <Loader size="xs" /> : <Kbd size="xs">Esc</Kbd>}
          rightSectionWidth={52}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </Combobox.EventsTarget>
      <ScrollArea.Autosize mah="50vh" type="scroll" px="xs" pb="xs" viewportProps={{ tabIndex: 0 }}>
        <Combobox.Options aria-label="What was found">
          {entries.length === 0 && <Combobox.Empty>{busy ? 'Searching' : 'Nothing matches'}</Combobox.Empty>}
          {groups.map((group) => (
            <Combobox.Group key={group} label={group}>
              {entries
                .filter((entry) => entry.group === group)
                .map((entry) => (
                  <Combobox.Option key={entry.value} value={entry.value}>
                    <Group justify="space-between" wrap="nowrap" gap="sm">
                      <Text size="sm" truncate>
                        {entry.label}
                      </Text>
                      {entry.hint && (
                        <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
                          {entry.hint}
                        </Text>
                      )}
                    </Group>
                  </Combobox.Option>
                ))}
            </Combobox.Group>
          ))}
        </Combobox.Options>
      </ScrollArea.Autosize>
    </Combobox>
  );
}

function useEntries(text: string, onClose: () => void): { entries: Entry[]; busy: boolean } {
  const navigate = useNavigate();
  const [asked] = useDebouncedValue(text.trim(), 120);
  const search = useQuery(searchQuery(asked));
  const hits = asked && text.trim() ? search.data : undefined;
  const entries = useMemo(() => {
    const to = (path: string) => () => {
      onClose();
      void navigate({ to: path });
    };
    const pages = [
      ...[...PLACES, ...BEYOND].map((place) => ({ ...place, group: 'Pages' })),
      ...ACTIONS.map((action) => ({ ...action, group: 'Make' })),
    ].filter((one) => matches(text, one.label));
    const fixed = pages.map(({ to: path, label, group }) => ({ value: path, group, label, go: to(path) }));
    return [...(hits ?? []).map((hit) => entryOf(hit, to)), ...fixed];
  }, [hits, text, navigate, onClose]);
  return { entries, busy: search.isFetching };
}

function entryOf(hit: Hit, to: (path: string) => () => void): Entry {
  const { group, path } = KINDS[hit.kind];
  const hint = [hit.outcome, hit.createdAt && ago(hit.createdAt)].filter(Boolean).join(' · ');
  return { value: `${hit.kind} ${hit.id}`, group, label: hit.name, hint, go: to(`${path}${hit.id}`) };
}
