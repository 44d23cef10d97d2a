// A list: heads, search, the states a list can be in, and only the rows in view, however many there are.
import { Group, Paper, Table, Text, TextInput, VisuallyHidden } from '@mantine/core';
import { type Icon, IconPlus, IconSearch } from '@tabler/icons-react';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';
import { EmptyState } from '../parts/EmptyState';
import { ErrorState } from '../parts/ErrorState';
import { Loading } from '../parts/Loading';
import { LinkButton } from '../parts/links';
import { count, plural } from '../parts/numbers';
import { PageTitle } from '../parts/PageTitle';
import { useSearchParam } from '../parts/useSearchParam';

type Named = { id: string; name: string };

export interface ListColumn {
  head: string;
  width?: string | number;
  /** Numbers stand at the right */
  number?: boolean;
  visibleFrom?: 'xs' | 'sm' | 'md';
  /** What the column holds needs no head for the eye */
  hidden?: boolean;
}

/** What a list needs of the query that reads it. */
interface ListQuery<T> {
  data?: T[];
  error: Error | null;
  isPending: boolean;
  refetch: () => unknown;
}

interface ListingProps<T extends Named> {
  title: string;
  noun: string;
  /** Where a new one is made; without it, what to do when there is none */
  newAt?: '/personas/new' | '/connectors/new' | '/monitors/new' | '/scenarios/new' | '/evals/new';
  start?: ReactNode;
  /** The way to a new one, where it is called otherwise */
  add?: ReactNode;
  /** The way back */
  above?: ReactNode[];
  /** What is said where there is none at all */
  none?: string;
  icon: Icon;
  why: ReactNode;
  query: ListQuery<T>;
  /** What the search looks at besides the name. */
  words?: (item: T) => string;
  /** Where the server searches: the words, and what is told when they change */
  search?: [string, (text: string) => void];
  /** What else the list is narrowed by, and whether an item is left by it */
  filters?: ReactNode;
  keep?: (item: T) => boolean;
  narrowed?: boolean;
  columns: (string | ListColumn)[];
  /** The least width that its columns need */
  narrowest?: number;
  row: (item: T) => ReactNode;
  /** Ways to other pages, beside that to a new one */
  ways?: ReactNode;
  /** Between the heading and the list */
  notice?: ReactNode;
  /** Below the list */
  below?: ReactNode;
}

export function matches(search: string, text: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const where = text.toLowerCase();
  return words.every((word) => where.includes(word));
}

export function Listing<T extends Named>(props: ListingProps<T>) {
  const { title, noun, newAt, query } = props;
  const own = useSearchParam('text');
  const [search, setSearch] = props.search ?? own;
  const narrowed = props.narrowed || (props.search !== undefined && search !== '');
  const add =
    props.add ??
    (newAt && (
      <LinkButton to={newAt} leftSection={<IconPlus size={16} aria-hidden />}>
        New {noun}
      </LinkButton>
    ));
  const none = query.data?.length === 0 && !narrowed;
  return (
    <>
      <PageTitle
        title={title}
        above={props.above}
        actions={
          <>
            {props.ways}
            {query.data?.length ? add : null}
          </>
        }
      />
      {props.notice}
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {none && (
        <EmptyState
          icon={props.icon}
          title={props.none ?? `No ${title.toLowerCase()} yet`}
          actions={add ?? props.start}
        >
          {props.why}
        </EmptyState>
      )}
      {!none && !query.error && <Found {...props} search={[search, setSearch]} inServer={!!props.search} />}
    </>
  );
}

type FoundProps<T extends Named> = ListingProps<T> & {
  search: [string, (text: string) => void];
  inServer: boolean;
};

function Found<T extends Named>({ inServer, ...props }: FoundProps<T>) {
  const { title, noun, query, words, keep } = props;
  const [search, setSearch] = props.search;
  const all = query.data ?? [];
  const items = all.filter(
    (item) => (!keep || keep(item)) && (inServer || matches(search, `${item.name} ${words?.(item) ?? ''}`)),
  );
  const total = plural(all.length, noun);
  return (
    <>
      <Group mb="sm" align="center" gap="sm">
        <TextInput
          aria-label={`Search ${title.toLowerCase()}`}
          placeholder="Search"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          w={{ base: '100%', xs: 280 }}
        />
        {props.filters}
        {query.data && !inServer && (
          <Text size="sm" c="dimmed" role="status">
            {items.length === all.length ? total : `${count(items.length)} of ${total}`}
          </Text>
        )}
      </Group>
      {query.isPending && <Loading />}
      {query.data && items.length > 0 && <Rows {...props} items={items} />}
      {query.data && items.length === 0 && (
        <Text c="dimmed" mt="md">
          {search ? `Nothing matches "${search}".` : `No ${noun} matches.`}
        </Text>
      )}
      {props.below}
    </>
  );
}

const ROW = 53;
const NARROWEST = 520;

function Rows<T extends Named>(props: ListingProps<T> & { items: T[] }) {
  const { title, columns, items, row, narrowest = NARROWEST } = props;
  const table = useRef<HTMLTableElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(table.current?.offsetTop ?? 0), []);
  const list = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => ROW,
    getItemKey: (place) => items[place]?.id ?? place,
    overscan: 10,
    scrollMargin: top,
  });
  const shown = list.getVirtualItems();
  const before = (shown[0]?.start ?? top) - top;
  const after = list.getTotalSize() - ((shown.at(-1)?.end ?? top) - top);
  return (
    <Paper withBorder>
      <Table.ScrollContainer
        minWidth={narrowest}
        pos="relative"
        type="native"
        tabIndex={0}
        aria-label={title}
      >
        <Table ref={table} aria-label={title} aria-rowcount={items.length + 1}>
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <Head key={typeof column === 'string' ? column : column.head} column={column} />
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {before > 0 && <tr aria-hidden style={{ height: before }} />}
            {shown.map(({ index, key }) => {
              const item = items[index];
              return (
                item && (
                  <Table.Tr key={key} ref={list.measureElement} data-index={index} aria-rowindex={index + 2}>
                    {row(item)}
                  </Table.Tr>
                )
              );
            })}
            {after > 0 && <tr aria-hidden style={{ height: after }} />}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  );
}

function Head({ column }: { column: string | ListColumn }) {
  const { head, width, number, visibleFrom, hidden } =
    typeof column === 'string' ? ({ head: column } as ListColumn) : column;
  return (
    <Table.Th
      w={width}
      ta={number ? 'right' : undefined}
      visibleFrom={visibleFrom}
      pos={hidden ? 'relative' : undefined}
    >
      {hidden ? <VisuallyHidden>{head}</VisuallyHidden> : head}
    </Table.Th>
  );
}
