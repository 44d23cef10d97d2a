// A value no form can show well, edited as JSON. What is not JSON yet is kept in the box and reported.
import { JsonInput } from '@mantine/core';
import type { FieldProps } from '@rjsf/utils';
import { useState } from 'react';
import { useInputProblem } from './inputProblems';

export function JsonField(props: FieldProps) {
  const { fieldPathId, formData, onChange, schema, required, disabled, readonly, rawErrors } = props;
  return (
    <JsonBox
      id={fieldPathId.$id}
      label={schema.title ?? props.name}
      description={schema.description}
      required={required}
      disabled={disabled || readonly}
      error={rawErrors?.join(', ')}
      value={formData}
      onChange={(value) => onChange(value, fieldPathId.path)}
    />
  );
}

type JsonBoxProps = {
  id: string;
  label: string;
  description?: string;
  required?: boolean;
  disabled?: boolean;
  error?: string;
  value: unknown;
  onChange: (value: unknown) => void;
};

export function JsonBox({ id, value, error, onChange, ...inputProps }: JsonBoxProps) {
  const [text, setText] = useState(() => written(value));
  const [known, setKnown] = useState(value);
  if (value !== known) {
    setKnown(value);
    if (!sameJson(text, value)) setText(written(value));
  }
  const problem = problemIn(text);
  useInputProblem(id, problem ? `${inputProps.label}: ${problem}` : undefined);
  const change = (next: string) => {
    setText(next);
    if (problemIn(next)) return;
    const parsed = read(next);
    setKnown(parsed);
    onChange(parsed);
  };
  return (
    <JsonInput
      {...inputProps}
      id={id}
      value={text}
      onChange={change}
      error={problem ?? error}
      autosize
      minRows={2}
      maxRows={16}
      placeholder="JSON"
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
    />
  );
}

function written(value: unknown): string {
  return value === undefined || value === null ? '' : JSON.stringify(value, null, 2);
}

function read(text: string): unknown {
  return text.trim() ? JSON.parse(text) : undefined;
}

function problemIn(text: string): string | undefined {
  try {
    read(text);
    return undefined;
  } catch {
    return 'This is not JSON yet';
  }
}

function sameJson(text: string, value: unknown): boolean {
  return !problemIn(text) && JSON.stringify(read(text)) === JSON.stringify(value);
}
