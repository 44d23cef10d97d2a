// A moment: how long ago, with the exact time when asked.
import { Text, type TextProps } from '@mantine/core';
import { ago, exactTime } from './numbers';

export function RelativeTime({ at, ...text }: { at: string } & TextProps) {
  return (
    <Text span size="sm" c="dimmed" {...text}>
      <time dateTime={at} title={exactTime(at)}>
        {ago(at)}
      </time>
    </Text>
  );
}
