// One message of the chat: who spoke, what was said, and the tools that were called, folded.
import { Badge, Code, Group, Paper, Stack, Text } from '@mantine/core';
import { IconRobot, IconSettings, IconTool, IconUser } from '@tabler/icons-react';
import { memo } from 'react';
import { duration, plural } from '../../parts/numbers';
import { LongText, Markdown } from './Markdown';
import classes from './Run.module.css';
import { type Turn, tokensOf } from './results';
import { type Message, type MessageRow, readable, textOf } from './transcript';

const WHO = {
  user: { name: 'User', icon: IconUser },
  assistant: { name: 'Agent', icon: IconRobot },
  tool: { name: 'Tool', icon: IconTool },
  system: { name: 'System', icon: IconSettings },
} as const;

interface Props {
  row: MessageRow;
  detail: Turn | null;
  quotes: string[];
}

export const MessageView = memo(function MessageView({ row, detail, quotes }: Props) {
  const { message } = row;
  const { name, icon: Who } = WHO[message.role as keyof typeof WHO] ?? { name: message.role, icon: IconUser };
  const text = textOf(message);
  return (
    <Paper className={classes.message} data-role={message.role} withBorder px="sm" py={6}>
      <Group gap={6} mb={2} justify="space-between" wrap="nowrap">
        <Group gap={6} wrap="nowrap">
          <Who size={14} stroke={1.8} aria-hidden />
          <Text size="xs" fw={600}>
            {message.name ? `${name} (${message.name})` : name}
          </Text>
        </Group>
        {row.last && detail && <Cost detail={detail} />}
      </Group>
      <Stack gap={6}>
        {text &&
          (message.role === 'tool' ? (
            <LongText text={readable(text)} />
          ) : (
            <Markdown text={text} quotes={quotes} />
          ))}
        {(message.tool_calls ?? []).map((call, place) => (
          <ToolCallView key={call.id || place} call={call} answer={row.results.get(call.id ?? '')} />
        ))}
        {!text && !message.tool_calls?.length && (
          <Text size="sm" c="dimmed">
            (nothing was said)
          </Text>
        )}
      </Stack>
    </Paper>
  );
});

function Cost({ detail }: { detail: Turn }) {
  const tokens = tokensOf(detail.tokensUsage);
  return (
    <Text size="xs" c="dimmed" className={classes.figures}>
      {detail.latencyMs !== null && duration(detail.latencyMs)}
      {tokens && (
        <span title={`${tokens.input} in, ${tokens.output} out`}> · {plural(tokens.total, 'token')}</span>
      )}
    </Text>
  );
}

type Call = NonNullable<Message['tool_calls']>[number];

function ToolCallView({ call, answer }: { call: Call; answer?: Message }) {
  return (
    <details className={classes.tool}>
      <summary>
        <IconTool size={13} aria-hidden /> <Code>{call.function.name}</Code>{' '}
        <Text span size="xs" c="dimmed">
          {shortened(String(call.function.arguments ?? ''))}
        </Text>{' '}
        {!answer && (
          <Badge size="xs" variant="light" color="gray" tt="none">
            no result
          </Badge>
        )}
      </summary>
      <Text size="xs" mt={4}>
        Arguments
      </Text>
      <LongText text={readable(String(call.function.arguments ?? ''))} step={5_000} />
      {answer && (
        <>
          <Text size="xs" mt={4}>
            Result
          </Text>
          <LongText text={readable(textOf(answer))} step={5_000} />
        </>
      )}
    </details>
  );
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
