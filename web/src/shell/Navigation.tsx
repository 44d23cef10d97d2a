// The main navigation.
import { NavLink, Stack } from '@mantine/core';
import {
  IconArrowsDiff,
  IconClipboardCheck,
  IconGauge,
  IconHeartRateMonitor,
  IconHome,
  IconList,
  IconListCheck,
  IconMessages,
  IconPlayerPlay,
  IconPlug,
  IconSettings,
  IconUser,
} from '@tabler/icons-react';
import { Link, useRouterState } from '@tanstack/react-router';

export const PLACES = [
  { to: '/', label: 'Home', icon: IconHome, also: [] },
  { to: '/evals', label: 'Evals', icon: IconClipboardCheck, also: [] },
  { to: '/executions', label: 'Executions', icon: IconPlayerPlay, also: [] },
  { to: '/runs', label: 'Runs', icon: IconList, also: [] },
  { to: '/compare', label: 'Compare', icon: IconArrowsDiff, also: [] },
  { to: '/scoring', label: 'Scoring', icon: IconListCheck, also: [] },
  { to: '/scenarios', label: 'Scenarios', icon: IconMessages, also: [] },
  { to: '/personas', label: 'Personas', icon: IconUser, also: [] },
  { to: '/connectors', label: 'Connectors', icon: IconPlug, also: [] },
  { to: '/evaluators', label: 'Evaluators', icon: IconGauge, also: [] },
  { to: '/monitors', label: 'Monitors', icon: IconHeartRateMonitor, also: ['/production'] },
  { to: '/settings', label: 'Settings', icon: IconSettings, also: [] },
] as const;

export function Navigation({ onGo }: { onGo: () => void }) {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <Stack gap={2}>
      {PLACES.map(({ to, label, icon: Icon, also }) => {
        const active = [to, ...also].some((place) => isUnder(path, place));
        return (
          <NavLink
            key={to}
            component={Link}
            to={to}
            label={label}
            leftSection={<Icon size={18} stroke={1.6} aria-hidden />}
            active={active}
            aria-current={active ? 'page' : undefined}
            onClick={onGo}
          />
        );
      })}
    </Stack>
  );
}

function isUnder(path: string, place: string): boolean {
  return place === '/' ? path === '/' : path === place || path.startsWith(`${place}/`);
}
