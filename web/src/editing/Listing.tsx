// A list of definitions: search, a way to make a new one, and the states a list can be in.
import { Group, Table, Text, TextInput } from '@mantine/core';
import { type Icon, IconPlus, IconSearch } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { EmptyState } from '../parts/EmptyState';
import { ErrorState } from '../parts/ErrorState';
import { Loading } from '../parts/Loading';
import { LinkButton } from '../parts/links';
import { PageTitle } from '../parts/PageTitle';
import { useSearchParam } from '../parts/useSearchParam';

type Named = { id: string; name: string };

type ListingProps<T extends Named> = {
  title: string;
  noun: string;
  newAt: '/personas/new' | '/connectors/new' | '/monitors/new';
  icon: Icon;
  why: ReactNode;
  query: UseQueryResult<T[]>;
  /** What the search looks at besides the name. */
  words?: (item: T) => string;
  columns: string[];
  row: (item: T) => ReactNode;
  /** Ways to other pages, beside that to a new one. */
  ways?: ReactNode;
};

export function matches(search: string, text: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const where = text.toLowerCase();
  return words.every((word) => where.includes(word));
}

export function Listing<T extends Named>(props: ListingProps<T>) {
  const { title, noun, newAt, query, words } = props;
  const [search, setSearch] = useSearchParam('text');
  const items = (query.data ?? []).filter((item) => matches(search, `${item.name} ${words?.(item) ?? ''}`));
  const add = (
    <LinkButton to={newAt} leftSection={<IconPlus size={16} />}>
      New {noun}
    </LinkButton>
  );
  return (
    <>
      <PageTitle
        title={title}
        actions={
          <>
            {props.ways}
            {query.data?.length ? add : null}
          </>
        }
      />
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.data?.length === 0 && (
        <EmptyState icon={props.icon} title={`No ${title.toLowerCase()} yet`} actions={add}>
          {props.why}
        </EmptyState>
      )}
      {query.data && query.data.length > 0 && (
        <>
          <Group mb="sm">
            <TextInput
              aria-label={`Search ${title.toLowerCase()}`}
              placeholder="Search"
              leftSection={<IconSearch size={16} />}
              value={search}
              onChange={(event) => setSearch(event.currentTarget.value)}
              w={{ base: '100%', xs: 280 }}
            />
          </Group>
          <ListingTable {...props} items={items} />
          {items.length === 0 && (
            <Text c="dimmed" mt="md">
              Nothing matches "{search}".
            </Text>
          )}
        </>
      )}
    </>
  );
}

function ListingTable<T extends Named>({ title, columns, items, row }: ListingProps<T> & { items: T[] }) {
  return (
    <Table.ScrollContainer
      minWidth={520}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': title } }}
    >
      <Table>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column}>{column}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((item) => (
            <Table.Tr key={item.id}>{row(item)}</Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
