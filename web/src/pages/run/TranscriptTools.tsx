// Above the conversation: search in it, copy it, read it as it was written.
import { ActionIcon, Group, Switch, Text, TextInput, Tooltip } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { IconCheck, IconChevronDown, IconChevronUp, IconCopy, IconSearch } from '@tabler/icons-react';
import type { TranscriptSearch } from './useTranscriptSearch';

interface Props {
  search: TranscriptSearch;
  /** What copying takes: the conversation as text */
  text: () => string;
  plain: boolean;
  onPlain: (plain: boolean) => void;
}

export function TranscriptTools({ search, text, plain, onPlain }: Props) {
  return (
    <Group gap="xs" mb="xs">
      <TextInput
        aria-label="Search the conversation"
        placeholder="Search the conversation"
        size="xs"
        flex={1}
        miw={160}
        maw={320}
        leftSection={<IconSearch size={14} aria-hidden />}
        value={search.text}
        onChange={(event) => search.change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') search.step(event.shiftKey ? -1 : 1);
        }}
      />
      {search.text && <Matches search={search} />}
      <Switch
        size="xs"
        label="As written"
        checked={plain}
        onChange={(event) => onPlain(event.currentTarget.checked)}
      />
      <CopyText label="Copy the conversation" text={text} />
    </Group>
  );
}

function Matches({ search }: { search: TranscriptSearch }) {
  return (
    <Group gap={2} wrap="nowrap">
      <Text size="xs" c="dimmed" role="status">
        {search.found === 0 ? 'not said' : `${search.place} of ${search.found}`}
      </Text>
      <ActionIcon
        size="sm"
        variant="subtle"
        color="gray"
        aria-label="Previous match"
        disabled={search.found === 0}
        onClick={() => search.step(-1)}
      >
        <IconChevronUp size={14} aria-hidden />
      </ActionIcon>
      <ActionIcon
        size="sm"
        variant="subtle"
        color="gray"
        aria-label="Next match"
        disabled={search.found === 0}
        onClick={() => search.step(1)}
      >
        <IconChevronDown size={14} aria-hidden />
      </ActionIcon>
    </Group>
  );
}

/** Puts a text on the clipboard and says so. The text is made when it is asked for. */
export function CopyText({ label, text }: { label: string; text: () => string }) {
  const clipboard = useClipboard({ timeout: 1_500 });
  return (
    <Tooltip label={clipboard.copied ? 'Copied' : label}>
      <ActionIcon
        size="sm"
        variant="subtle"
        color="gray"
        aria-label={clipboard.copied ? 'Copied' : label}
        onClick={() => clipboard.copy(text())}
      >
        {clipboard.copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
      </ActionIcon>
    </Tooltip>
  );
}
