// The YAML of a plan with numbered lines, and what is wrong with it, line by line.
import { Alert, Anchor, Group, List, Loader, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck } from '@tabler/icons-react';
import { useRef } from 'react';
import type { Schemas } from '../../api/client';
import { Section } from '../../editing/Section';
import { plural } from '../../parts/numbers';
import classes from './Scoring.module.css';
import type { PlanEditing } from './usePlan';

const EXAMPLE = `criteria:
  - name: helpful
    scale: binary
evaluators:
  - type: keyword-coverage
    config:
      criterionName: helpful
      keywords: [refund]`;
const FEWEST_LINES = 16;

export function PlanYaml({ editing }: { editing: PlanEditing }) {
  const { text, problems, setText } = editing;
  const box = useRef<HTMLTextAreaElement>(null);
  const lines = Math.max(FEWEST_LINES, text.split('\n').length);
  const wrong = new Set(problems.map(({ line }) => line));
  const goTo = (line: number) => {
    const before = text.split('\n').slice(0, line - 1);
    const start = before.reduce((sum, one) => sum + one.length + 1, 0);
    const end = text.indexOf('\n', start);
    box.current?.focus();
    box.current?.setSelectionRange(start, end < 0 ? text.length : end);
  };
  return (
    <Section
      title="YAML"
      hint="The same plan as a file has it: what is typed on one side is on the other a moment later."
      action={<Standing editing={editing} />}
    >
      <div className={classes.yaml}>
        <div className={classes.numbers} aria-hidden>
          {Array.from({ length: lines }, (_, index) => index + 1).map((number) => (
            <div key={number} data-wrong={wrong.has(number) || undefined}>
              {number}
            </div>
          ))}
        </div>
        <textarea
          ref={box}
          className={classes.text}
          aria-label="YAML of the plan"
          aria-describedby="plan-problems"
          spellCheck={false}
          autoCapitalize="off"
          wrap="off"
          rows={lines}
          placeholder={EXAMPLE}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <div id="plan-problems" aria-live="polite">
        <Problems problems={problems} onGo={goTo} />
      </div>
    </Section>
  );
}

function Standing({ editing }: { editing: PlanEditing }) {
  const { checking, problems, text } = editing;
  if (checking) return <Loader size="xs" aria-label="Checking" />;
  if (!text || problems.length > 0) return null;
  return (
    <Group gap={4} wrap="nowrap">
      <IconCircleCheck size={16} color="var(--mantine-color-teal-6)" aria-hidden />
      <Text size="sm">Can be used</Text>
    </Group>
  );
}

type ProblemsProps = { problems: Schemas['PlanProblem'][]; onGo: (line: number) => void };

function Problems({ problems, onGo }: ProblemsProps) {
  if (problems.length === 0) return null;
  return (
    <Alert
      color="red"
      icon={<IconAlertTriangle aria-hidden />}
      title={`${plural(problems.length, 'thing')} to mend`}
    >
      <List size="sm" spacing={4} listStyleType="none">
        {problems.map(({ path, message, hint, line }) => (
          <List.Item key={`${line} ${path} ${message}`} style={{ overflowWrap: 'anywhere' }}>
            {line !== null && (
              <Anchor component="button" type="button" size="sm" onClick={() => onGo(line)}>
                line {line}
              </Anchor>
            )}{' '}
            {path && <b>{path}: </b>}
            {message}
            {hint && `; ${hint}`}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
