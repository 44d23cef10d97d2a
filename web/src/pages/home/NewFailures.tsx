// What fails now and did not fail in the baseline, each with a run that shows it.
import { Table, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { Block } from '../../parts/Block';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { PassShare } from '../../parts/PassShare';
import type { Card } from './EvalCard';
import classes from './Home.module.css';

export function NewFailures({ cards }: { cards: Card[] }) {
  const compared = cards.filter((card) => card.progress);
  if (compared.length === 0) return null;
  const more = compared.reduce((sum, card) => sum + (card.progress?.moreFailures ?? 0), 0);
  const rows = compared.flatMap((card) =>
    (card.progress?.failures ?? []).map((failure) => ({ card, failure })),
  );
  return (
    <Block
      title="New failures"
      hint="What fails in the newest execution and did not fail in the one it is compared with"
    >
      {rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          <IconCircleCheck size={16} style={{ verticalAlign: '-3px' }} aria-hidden /> Nothing new fails.
        </Text>
      ) : (
        <Table.ScrollContainer minWidth={620} type="native" tabIndex={0} aria-label="New failures">
          <Table aria-label="New failures">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Scenario</Table.Th>
                <Table.Th>Passed before</Table.Th>
                <Table.Th>Passed now</Table.Th>
                <Table.Th>Why</Table.Th>
                <Table.Th>Eval</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map(({ card, failure }) => (
                <Table.Tr key={failure.runId}>
                  <Table.Td>
                    <PageLink to="/runs/$runId" params={{ runId: failure.runId }} size="sm" fw={500}>
                      {failure.subject.label}
                    </PageLink>
                  </Table.Td>
                  <Table.Td>
                    <PassShare runs={failure.base} />
                  </Table.Td>
                  <Table.Td>
                    <PassShare runs={failure.candidate} />
                  </Table.Td>
                  <Table.Td>
                    <Text size="sm" className={classes.reason} title={failure.reason}>
                      {failure.reason}
                    </Text>
                  </Table.Td>
                  <Table.Td>
                    <Text size="sm">{card.evalName}</Text>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {more > 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {plural(more, 'more new failure')}: open the comparison of its eval.
        </Text>
      )}
    </Block>
  );
}
