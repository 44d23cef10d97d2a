// The subjects of a comparison in tabs; a row opens the two conversations. n and p go from row to row.
import { Badge, Group, Kbd, Paper, Table, Tabs, Text } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { getRouteApi } from '@tanstack/react-router';
import { useDeferredValue } from 'react';
import { PageLink } from '../../parts/links';
import { plural } from '../../parts/numbers';
import { PassShare } from '../../parts/PassShare';
import { Tip } from '../../parts/Tip';
import classes from './Compare.module.css';
import {
  CATEGORIES,
  type Category,
  type Compared,
  type Comparison,
  firstTab,
  keyOfRow,
  rowsIn,
} from './rows';
import { SubjectDetail } from './SubjectDetail';

const route = getRouteApi('/compare');

export function Subjects({ comparison }: { comparison: Comparison }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tab = (CATEGORIES.find(({ value }) => value === search.tab)?.value ??
    firstTab(comparison)) as Category;
  const rows = rowsIn(comparison, tab);
  const place = rows.findIndex((one) => keyOfRow(one) === search.row);
  const open = (row: Compared | undefined) => {
    if (row) void navigate({ search: { ...search, tab, row: keyOfRow(row) }, replace: place >= 0 });
  };
  useHotkeys([
    ['n', () => open(rows[place + 1])],
    ['p', () => open(rows[place < 0 ? rows.length - 1 : place - 1])],
  ]);
  const opened = rows[place];
  if (opened) {
    return (
      <SubjectDetail
        key={search.row}
        comparison={comparison}
        row={opened}
        place={place}
        of={rows.length}
        onStep={(by) => open(rows[place + by])}
      />
    );
  }
  return (
    <Paper withBorder p="md" component="section" aria-label="Subjects">
      <Tabs
        value={tab}
        onChange={(value) => void navigate({ search: { ...search, tab: value ?? undefined }, replace: true })}
        keepMounted={false}
      >
        <Tabs.List mb="sm">
          {CATEGORIES.map(({ value, label }) => (
            <Tabs.Tab
              key={value}
              value={value}
              rightSection={<Count number={comparison.counts[value] ?? 0} />}
            >
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {CATEGORIES.map(({ value, meaning }) => (
          <Tabs.Panel key={value} value={value}>
            <Group justify="space-between" mb="xs">
              <Text size="sm" c="dimmed">
                {meaning}
              </Text>
              {rows.length > 0 && (
                <Text size="xs" c="dimmed" visibleFrom="sm">
                  <Kbd size="xs">n</Kbd> <Kbd size="xs">p</Kbd> next and previous
                </Text>
              )}
            </Group>
            <Rows
              rows={rows}
              counted={comparison.counts[value] ?? 0}
              records={comparison.base.isResultsFile}
            />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Paper>
  );
}

function Count({ number }: { number: number }) {
  return (
    <Badge variant="default" size="sm" circle={number < 10} c={number ? undefined : 'dimmed'}>
      {number}
    </Badge>
  );
}

const FIRST_ROWS = 30;

function Rows({ rows, counted, records }: { rows: Compared[]; counted: number; records: boolean }) {
  const search = route.useSearch();
  // The page is there with the first rows; hundreds more are made without holding it up.
  const shown = useDeferredValue(rows, rows.slice(0, FIRST_ROWS));
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {counted > 0 ? `${plural(counted, 'subject')} that need no look.` : 'None.'}
      </Text>
    );
  }
  return (
    <Table.ScrollContainer minWidth={640} type="native" tabIndex={0} aria-label="Subjects">
      <Table aria-label="Subjects">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{records ? 'Record' : 'Scenario'}</Table.Th>
            <Table.Th>Base</Table.Th>
            <Table.Th>Candidate</Table.Th>
            {!records && (
              <Table.Th>
                <Tip term="flaky">Earlier runs</Tip>
              </Table.Th>
            )}
            <Table.Th>What changed</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shown.map((row) => (
            <Table.Tr key={keyOfRow(row)}>
              <Table.Td>
                <PageLink
                  to="/compare"
                  search={{ ...search, tab: row.category, row: keyOfRow(row) }}
                  size="sm"
                  fw={500}
                >
                  {row.subject.label}
                </PageLink>
              </Table.Td>
              <Table.Td>
                <PassShare runs={row.base} />
              </Table.Td>
              <Table.Td>
                <PassShare runs={row.candidate} />
              </Table.Td>
              {!records && (
                <Table.Td>
                  <Text size="sm" c="dimmed" className={classes.history}>
                    {row.drop ? `${row.drop.historyPassed} of ${row.drop.historyScored} passed` : '–'}
                  </Text>
                </Table.Td>
              )}
              <Table.Td>
                <Group gap={4}>
                  {row.changes.map((change) => (
                    <Badge key={`${change.what} ${change.name}`} variant="default" size="sm">
                      {change.name ? `${change.what} (${change.name})` : change.what}
                    </Badge>
                  ))}
                  {row.changes.length === 0 && '–'}
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
