// A value that is usually text and may be any JSON. It is read when the field is left: half of JSON is text, too.
import { Textarea, type TextareaProps } from '@mantine/core';
import { useState } from 'react';
import { cellText, cellValue } from './cells';

type TextOrJsonProps = Omit<TextareaProps, 'value' | 'onChange' | 'onBlur'> & {
  value: unknown;
  onChange: (value: unknown) => void;
};

export function TextOrJson({ value, onChange, ...inputProps }: TextOrJsonProps) {
  const stored = cellText(value);
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <Textarea
      autosize
      minRows={1}
      maxRows={10}
      {...inputProps}
      value={typed ?? stored}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        onChange(cellValue(event.currentTarget.value));
      }}
      onBlur={() => setTyped(null)}
    />
  );
}
