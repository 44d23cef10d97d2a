// One message of the chat: who spoke, what was said, and the tools that were called, folded.
import { IconRobot, IconSettings, IconTool, IconUser } from '@tabler/icons-react';
import { memo, useState } from 'react';
import { duration, plural } from '../../parts/numbers';
import { Folded } from './Folded';
import { LongText, Markdown } from './Markdown';
import classes from './Run.module.css';
import { attemptText, type Turn, tokensOf } from './results';
import { CopyText } from './TranscriptTools';
import { type Message, type MessageRow, readable, rowText, textOf } from './transcript';

const ROLES = {
  user: { name: 'User', icon: IconUser },
  assistant: { name: 'Agent', icon: IconRobot },
  tool: { name: 'Tool', icon: IconTool },
  system: { name: 'System', icon: IconSettings },
} as const;

interface Props {
  row: MessageRow;
  detail: Turn | null;
  quotes: string[];
  plain: boolean;
}

export const MessageView = memo(function MessageView({ row, detail, quotes, plain }: Props) {
  const { message } = row;
  const { name, icon: RoleIcon } = ROLES[message.role as keyof typeof ROLES] ?? {
    name: message.role,
    icon: IconUser,
  };
  const text = textOf(message);
  return (
    <article className={classes.message} data-role={message.role}>
      <div className={classes.who}>
        <RoleIcon size={14} stroke={1.8} aria-hidden />
        <b>{message.name ? `${name} (${message.name})` : name}</b>
        {row.last && detail && <Cost detail={detail} />}
        <span className={classes.copy}>
          <CopyText label="Copy this message" text={() => rowText(row)} />
        </span>
      </div>
      {row.last && detail && <Attempts detail={detail} />}
      {row.last && detail && <Redacted places={detail.redacted ?? []} />}
      {text && <MessageText role={message.role} text={text} quotes={quotes} plain={plain} />}
      {(message.tool_calls ?? []).map((call, place) => (
        <ToolCallView key={call.id || place} call={call} answer={row.results.get(call.id ?? '')} />
      ))}
      {!text && !message.tool_calls?.length && <span className={classes.quiet}>(nothing was said)</span>}
      {row.last && detail?.metadata && Object.keys(detail.metadata).length > 0 && (
        <Folded title="Metadata" text={JSON.stringify(detail.metadata, null, 2)} />
      )}
    </article>
  );
});

interface TextProps {
  role: string;
  text: string;
  quotes: string[];
  plain: boolean;
}

function MessageText({ role, text, quotes, plain }: TextProps) {
  if (role === 'tool') return <LongText text={plain ? text : readable(text)} />;
  return <Markdown text={text} quotes={quotes} plain={plain} />;
}

function Cost({ detail }: { detail: Turn }) {
  const tokens = tokensOf(detail.tokensUsage);
  return (
    <span className={classes.cost}>
      {detail.latencyMs !== null && duration(detail.latencyMs)}
      {hasValue(detail.firstTokenMs) && <> · first token after {duration(detail.firstTokenMs)}</>}
      {tokens && (
        <span title={`${tokens.input} in, ${tokens.output} out`}> · {plural(tokens.total, 'token')}</span>
      )}
      {!tokens && detail.usageMissing && <span title={detail.usageMissing}> · tokens missing</span>}
    </span>
  );
}

function hasValue(value: number | null | undefined): value is number {
  return value !== null && value !== undefined;
}

/** What was tried before the agent answered; one try that answered needs no mention. */
function Attempts({ detail }: { detail: Turn }) {
  const attempts = detail.attempts ?? [];
  if (attempts.length < 2 && !attempts.some((one) => one.error)) return null;
  return (
    <ul className={classes.attempts} aria-label={`Attempts of turn ${detail.turn}`}>
      {attempts.map((one) => (
        <li key={one.number}>{attemptText(one)}</li>
      ))}
    </ul>
  );
}

/** That the agent gave secrets away in this turn, and where they stood. */
function Redacted({ places }: { places: string[] }) {
  if (places.length === 0) return null;
  return <p className={classes.redacted}>Secrets were taken out of this answer: {places.join(', ')}</p>;
}

type Call = NonNullable<Message['tool_calls']>[number];

function ToolCallView({ call, answer }: { call: Call; answer?: Message }) {
  const [opened, setOpened] = useState(false);
  const callArguments = String(call.function.arguments ?? '');
  return (
    <details className={classes.tool} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>
        <IconTool size={13} aria-hidden /> <code>{call.function.name}</code>{' '}
        <span className={classes.quiet}>
          {shortened(callArguments)}
          {!answer && ' (no result)'}
        </span>
      </summary>
      {opened && (
        <>
          <div className={classes.quiet}>Arguments</div>
          <LongText text={readable(callArguments)} step={5_000} />
          {answer && (
            <>
              <div className={classes.quiet}>Result</div>
              <LongText text={readable(textOf(answer))} step={5_000} />
            </>
          )}
        </>
      )}
    </details>
  );
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
