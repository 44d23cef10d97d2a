// The start: theme, queries, live events and the router.
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './shell/base.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { feed } from './api/events';
import { queryClient } from './api/queries';
import { keepFresh } from './api/updates';
import { router } from './router';
import { cssVariables, theme } from './shell/theme';

keepFresh(feed, queryClient);

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no element with the id "root".');
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto">
      <Notifications position="bottom-right" limit={3} />
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
