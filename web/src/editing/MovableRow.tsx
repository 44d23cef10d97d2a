// A row of an ordered list: Alt with the arrow keys moves it, and the keyboard stays with it.
import { Box, Group } from '@mantine/core';
import type { KeyboardEvent, ReactNode } from 'react';
import { RowButtons } from './RowButtons';
import type { Rows } from './useRows';

type MovableRowProps<T> = {
  rows: Rows<T>;
  index: number;
  what: string;
  /** A card has room for the buttons in its corner. */
  card?: boolean;
  children: ReactNode;
};

export function MovableRow<T>({ rows, index, what, card = false, children }: MovableRowProps<T>) {
  const last = rows.keys.length - 1;
  const move = (to: number) => {
    const focused = document.activeElement;
    rows.move(index, to);
    // Moving an element in the document takes the focus from it.
    requestAnimationFrame(() => focused instanceof HTMLElement && focused.isConnected && focused.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : 0;
    if (!event.altKey || step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    move(index + step);
  };
  const buttons = (
    <RowButtons
      what={what}
      onUp={index > 0 ? () => move(index - 1) : undefined}
      onDown={index < last ? () => move(index + 1) : undefined}
      onRemove={() => rows.remove(index)}
    />
  );
  if (card) {
    return (
      <Box pos="relative" onKeyDown={onKeyDown}>
        {children}
        <Box pos="absolute" top={6} right={6}>
          {buttons}
        </Box>
      </Box>
    );
  }
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap" onKeyDown={onKeyDown}>
      <Box flex={1} miw={0}>
        {children}
      </Box>
      {buttons}
    </Group>
  );
}
