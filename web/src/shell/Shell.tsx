// The frame around every page: header, navigation, the connection banner, and the door where a token is needed.
import { AppShell, Burger, Button, Group, Kbd, Text, VisuallyHidden } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef } from 'react';
import { feed } from '../api/events';
import { sessionQuery, statusQuery } from '../api/server';
import { ConnectionBanner } from './ConnectionBanner';
import { Navigation } from './Navigation';
import { SchemeToggle } from './SchemeToggle';
import classes from './Shell.module.css';

const LogIn = lazy(() => import('./LogIn'));
const Palette = lazy(() => import('./Palette'));

export function Shell() {
  const [opened, menu] = useDisclosure();
  const session = useQuery(sessionQuery);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const shut = session.data !== undefined && !session.data.authenticated;
  const main = useMainFocus(path);
  const [searching, palette] = useDisclosure();
  // Also inside a field: nobody types Ctrl-K as text.
  useHotkeys([['mod+K', palette.toggle]], []);

  useEffect(() => {
    if (session.data?.authenticated) feed.start();
  }, [session.data?.authenticated]);

  if (shut) {
    return (
      <Suspense fallback={null}>
        <LogIn />
      </Suspense>
    );
  }
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 190, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'sm', sm: 'lg' }}
    >
      <a href="#main" className={classes.skip}>
        Skip to content
      </a>
      <AppShell.Header>
        <Group h="100%" px="sm" justify="space-between" wrap="nowrap">
          <Group gap="xs" wrap="nowrap" miw={0}>
            <Burger
              opened={opened}
              onClick={menu.toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? 'Close navigation' : 'Open navigation'}
            />
            <Link to="/" className={classes.brand} onClick={menu.close}>
              <img src="/icon.svg" alt="" width={24} height={24} />
              EvalStudio
            </Link>
            <ProjectName />
          </Group>
          <Group gap={4} wrap="nowrap">
            <SearchButton onClick={palette.open} />
            <SchemeToggle />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Main">
        <Navigation onGo={menu.close} />
      </AppShell.Navbar>
      <AppShell.Main id="main" ref={main} tabIndex={-1} className={classes.main}>
        <ConnectionBanner />
        <Outlet />
        {searching && (
          <Suspense>
            <Palette opened onClose={palette.close} />
          </Suspense>
        )}
      </AppShell.Main>
    </AppShell>
  );
}

function SearchButton({ onClick }: { onClick: () => void }) {
  return (
    <Button
      variant="default"
      size="xs"
      fw={400}
      leftSection={<IconSearch size={15} aria-hidden />}
      classNames={{ section: classes.searchIcon }}
      onClick={onClick}
    >
      <Text span size="xs" visibleFrom="sm" c="dimmed">
        Search
      </Text>
      <VisuallyHidden hiddenFrom="sm">Search</VisuallyHidden>
      <Text span visibleFrom="sm" lh={1} ml="sm" aria-hidden>
        <Kbd size="xs">Ctrl K</Kbd>
      </Text>
    </Button>
  );
}

function ProjectName() {
  const { data } = useQuery(statusQuery);
  if (!data?.name) return null;
  return (
    <Text size="sm" c="dimmed" truncate visibleFrom="xs">
      {data.name}
    </Text>
  );
}

/** After going to another page the keyboard and screen readers begin at its content. */
function useMainFocus(path: string) {
  const main = useRef<HTMLElement>(null);
  const lastPath = useRef(path);
  useEffect(() => {
    if (lastPath.current !== path) main.current?.focus({ preventScroll: true });
    lastPath.current = path;
  }, [path]);
  return main;
}
