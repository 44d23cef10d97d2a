// When the rate of a monitor counts as having left its band, and who is told.
import { NumberInput, PasswordInput, SimpleGrid, Switch, TextInput } from '@mantine/core';
import { MASK } from '../../editing/headers';
import { at } from '../../editing/problems';
import { Section } from '../../editing/Section';
import type { Draft, Part } from './MonitorEditor';

type NumberOfBand = Exclude<keyof Draft['band'], 'expected'>;

const NUMBERS: { name: NumberOfBand; label: string; description: string; step: number; max: number }[] = [
  {
    name: 'learnFrom',
    label: 'Conversations to learn from',
    description: 'How many the expected rate is learnt from, where none is given',
    step: 50,
    max: 100_000,
  },
  {
    name: 'minEffect',
    label: 'Smallest drop',
    description: 'A smaller one raises no alarm: 0.05 is five points',
    step: 0.01,
    max: 0.9,
  },
  {
    name: 'maxErrorRate',
    label: 'Expected share of errors',
    description: 'Conversations that could not be judged; more of them raise an alarm',
    step: 0.01,
    max: 0.9,
  },
  {
    name: 'falseAlarmsPerMonth',
    label: 'False alarms a month',
    description: 'The most in 30 days, on average; fewer make the monitor slower',
    step: 0.1,
    max: 100,
  },
];

export function BandSection({ draft, change, problems }: Part) {
  const { band } = draft;
  const set = (patch: Partial<Draft['band']>) => change({ band: { ...band, ...patch } });
  return (
    <Section title="Band" hint="Where the pass rate is expected, and when it counts as having left.">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          clampBehavior="none"
          label="Expected pass rate"
          description="From 0 to 1; empty to learn it from the first conversations"
          placeholder="Learnt"
          min={0}
          max={1}
          step={0.01}
          value={band.expected ?? ''}
          error={at(problems, 'band.expected') ?? at(problems, 'band')}
          onChange={(value) => set({ expected: value === '' ? null : Number(value) })}
        />
        {NUMBERS.map(({ name, ...props }) => (
          <NumberInput
            clampBehavior="none"
            key={name}
            {...props}
            min={0}
            value={band[name]}
            error={at(problems, `band.${name}`)}
            onChange={(value) => set({ [name]: Number(value) })}
          />
        ))}
      </SimpleGrid>
    </Section>
  );
}

export function AlarmSection({ draft, change, problems }: Part) {
  const { alarm } = draft;
  const { webhook } = alarm;
  const set = (patch: Partial<Draft['alarm']>) => change({ alarm: { ...alarm, ...patch } });
  return (
    <Section title="Alarms" hint="An alarm is on the monitor's page in any case.">
      <TextInput
        label="Webhook"
        description="An http or https address that alarms are posted to; empty for none"
        placeholder="https://"
        value={webhook?.url ?? ''}
        error={at(problems, 'alarm.webhook.url') ?? at(problems, 'alarm.webhook')}
        onChange={(event) => {
          const url = event.currentTarget.value;
          set({ webhook: url ? { secret: null, ...webhook, url } : null });
        }}
      />
      {webhook && (
        <PasswordInput
          label="Secret of the webhook"
          description={
            webhook.secret === MASK
              ? 'Kept secret. Type to replace it.'
              : 'Signs what is posted, so that the receiver knows it is from here; kept sealed'
          }
          autoComplete="off"
          value={webhook.secret ?? ''}
          error={at(problems, 'alarm.webhook.secret')}
          onFocus={(event) => webhook.secret === MASK && event.currentTarget.select()}
          onChange={(event) => set({ webhook: { ...webhook, secret: event.currentTarget.value || null } })}
        />
      )}
      <NumberInput
        clampBehavior="none"
        label="Quiet hours"
        description="After the rate is back, so long no further alarm of the same kind is raised"
        min={0}
        max={8760}
        styles={{ wrapper: { maxWidth: 320 } }}
        value={alarm.quietHours}
        error={at(problems, 'alarm.quietHours')}
        onChange={(value) => set({ quietHours: Number(value) })}
      />
      <Switch
        label="In the server's log"
        description="Each alarm writes a line there"
        checked={alarm.log}
        onChange={(event) => set({ log: event.currentTarget.checked })}
      />
    </Section>
  );
}
