// A moment: how long ago, with the exact time when asked.
import { Text, type TextProps } from '@mantine/core';
import { ago } from './numbers';

export function RelativeTime({ at, ...text }: { at: string } & TextProps) {
  return (
    <Text span size="sm" c="dimmed" {...text}>
      <time dateTime={at} title={new Date(at).toLocaleString()}>
        {ago(at)}
      </time>
    </Text>
  );
}
