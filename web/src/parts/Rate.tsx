// A rate with what it rests on: how many of how many, and its 95% interval.
import { Text, Tooltip } from '@mantine/core';
import type { Schemas } from '../api/client';
import { percent } from './numbers';
import { GLOSSARY } from './Tip';

interface Props {
  rate: Schemas['Rate'];
}

export function Rate({ rate }: Props) {
  if (rate.rate === null) {
    return (
      <Text span size="sm" c="dimmed">
        none scored
      </Text>
    );
  }
  const interval = `95% interval ${percent(rate.low)} to ${percent(rate.high)}`;
  return (
    <Tooltip label={`${interval}. ${GLOSSARY.interval}`} multiline maw={320}>
      <Text
        span
        size="sm"
        tabIndex={0}
        aria-label={`${percent(rate.rate)}, ${rate.passed} of ${rate.of}, ${interval}`}
      >
        <b>{percent(rate.rate)}</b>{' '}
        <Text span size="xs" c="dimmed">
          {rate.passed} of {rate.of}
        </Text>
      </Text>
    </Tooltip>
  );
}
