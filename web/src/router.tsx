// All addresses of the app. Every page is loaded when it is first shown.
//
// To add or fill a page: pages/<noun>/<Name>Page.tsx with a default export; read parameters with
// getRouteApi('/scenarios/$scenarioId').useParams() and read data with the queries in api/, a file per noun.
// Shared parts are in parts/ (see parts/README.md). Forms must be safe under the server's content policy:
// no eval and no inline scripts (see parts/README.md).
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import { filterOf } from './pages/runs/filter';
import { PageError, PageMissing, PagePending, PageUnreachable } from './shell/PageStates';
import { Shell } from './shell/Shell';

const root = createRootRoute({ component: Shell, notFoundComponent: PageMissing });

type Page = Parameters<typeof lazyRouteComponent>[0];

/** The code of a page; while the server is away, a page that says so and is replaced once it is back. */
function loaded(load: Page): Page {
  return () => load().catch(() => ({ default: PageUnreachable }));
}

function page<const Path extends string>(path: Path, load: Page) {
  return createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(loaded(load)) });
}

/** What an execution page shows of its runs; kept in the address, so that it can be shared. */
export const RUN_CHOICES = ['all', 'pass', 'fail', 'error', 'unasserted', 'flaky', 'waiting'] as const;
export type RunChoice = (typeof RUN_CHOICES)[number];

export const GROUPINGS = ['scenario', 'connector', 'persona', 'tag', 'evaluator'] as const;
export type Grouping = (typeof GROUPINGS)[number];

export const MOST_COLUMNS = 20;

interface ExecutionSearch {
  show?: RunChoice;
  text?: string;
  scenario?: string;
  /** The column that rows are sorted by; with a minus before it, the largest first */
  sort?: string;
  group?: Grouping;
  /** The evaluators that have a column of their own */
  columns?: string[];
}

const execution = createRoute({
  getParentRoute: () => root,
  path: '/executions/$executionId',
  component: lazyRouteComponent(loaded(() => import('./pages/execution/ExecutionPage'))),
  validateSearch: (search: Record<string, unknown>): ExecutionSearch => ({
    show: RUN_CHOICES.find((choice) => choice === search.show && choice !== 'all'),
    text: typeof search.text === 'string' && search.text ? search.text : undefined,
    scenario: typeof search.scenario === 'string' ? search.scenario : undefined,
    sort: typeof search.sort === 'string' ? search.sort : undefined,
    group: GROUPINGS.find((one) => one === search.group),
    columns: namesIn(search.columns),
  }),
});

const run = createRoute({
  getParentRoute: () => root,
  path: '/runs/$runId',
  component: lazyRouteComponent(loaded(() => import('./pages/run/RunPage'))),
  validateSearch: (search: Record<string, unknown>): { attempt?: number; turn?: number } => ({
    attempt: whole(search.attempt),
    turn: whole(search.turn),
  }),
});

const runs = createRoute({
  getParentRoute: () => root,
  path: '/runs',
  component: lazyRouteComponent(loaded(() => import('./pages/runs/RunsPage'))),
  validateSearch: filterOf,
});

/** What a comparison shows: which two, which tab, and the row that is open. */
export interface CompareSearch {
  base?: string;
  candidate?: string;
  evalId?: string;
  baseConnector?: string;
  candidateConnector?: string;
  tab?: string;
  row?: string;
}

const COMPARED = [
  'base',
  'candidate',
  'evalId',
  'baseConnector',
  'candidateConnector',
  'tab',
  'row',
] as const satisfies (keyof CompareSearch)[];

const compare = createRoute({
  getParentRoute: () => root,
  path: '/compare',
  component: lazyRouteComponent(() => import('./pages/compare/ComparePage')),
  validateSearch: (search: Record<string, unknown>): CompareSearch =>
    Object.fromEntries(COMPARED.flatMap((name) => (search[name] ? [[name, String(search[name])]] : []))),
});

/** The names in an address, none twice and no more than the server answers for. */
function namesIn(value: unknown): string[] | undefined {
  const names = [value ?? []].flat().filter((one) => one !== '');
  return names.length > 0 ? [...new Set(names.map(String))].slice(0, MOST_COLUMNS) : undefined;
}

function whole(value: unknown): number | undefined {
  const number = Number(value);
  return value !== undefined && Number.isInteger(number) && number >= 0 ? number : undefined;
}

/** An opened results file, and which of its records are listed. */
const results = createRoute({
  getParentRoute: () => root,
  path: '/scoring/results',
  component: lazyRouteComponent(loaded(() => import('./pages/scoring/ResultsPage'))),
  validateSearch: (search: Record<string, unknown>): { path: string; outcome?: string } => ({
    path: String(search.path ?? ''),
    outcome: typeof search.outcome === 'string' ? search.outcome : undefined,
  }),
});

const newScenario = createRoute({
  getParentRoute: () => root,
  path: '/scenarios/new',
  component: lazyRouteComponent(loaded(() => import('./pages/scenarios/NewScenarioPage'))),
  validateSearch: (search: Record<string, unknown>): { fromRun?: string } => ({
    fromRun: search.fromRun === undefined ? undefined : String(search.fromRun),
  }),
});

const routes = root.addChildren([
  page('/', () => import('./pages/dashboard/DashboardPage')),
  page('/evals', () => import('./pages/evals/EvalsPage')),
  page('/evals/new', () => import('./pages/evals/NewEvalPage')),
  page('/evals/$evalId', () => import('./pages/evals/EvalPage')),
  page('/evals/$evalId/edit', () => import('./pages/evals/EditEvalPage')),
  page('/executions', () => import('./pages/executions/ExecutionsPage')),
  execution,
  runs,
  run,
  compare,
  page('/scenarios', () => import('./pages/scenarios/ScenariosPage')),
  newScenario,
  page('/scenarios/$scenarioId', () => import('./pages/scenarios/ScenarioPage')),
  page('/personas', () => import('./pages/personas/PersonasPage')),
  page('/personas/new', () => import('./pages/personas/NewPersonaPage')),
  page('/personas/$personaId', () => import('./pages/personas/PersonaPage')),
  page('/connectors', () => import('./pages/connectors/ConnectorsPage')),
  page('/connectors/new', () => import('./pages/connectors/NewConnectorPage')),
  page('/connectors/$connectorId', () => import('./pages/connectors/ConnectorPage')),
  page('/evaluators', () => import('./pages/evaluators/EvaluatorsPage')),
  page('/evaluators/$type', () => import('./pages/evaluators/EvaluatorPage')),
  page('/monitors', () => import('./pages/monitors/MonitorsPage')),
  page('/monitors/new', () => import('./pages/monitors/NewMonitorPage')),
  page('/monitors/$monitorId', () => import('./pages/monitors/MonitorPage')),
  page('/monitors/$monitorId/edit', () => import('./pages/monitors/EditMonitorPage')),
  page('/production', () => import('./pages/production/ConversationsPage')),
  page('/production/$conversationId', () => import('./pages/production/ConversationPage')),
  page('/scoring', () => import('./pages/scoring/ScoringPage')),
  page('/scoring/new', () => import('./pages/scoring/NewScoringPage')),
  page('/scoring/jobs/$scoringId', () => import('./pages/scoring/ScoringJobPage')),
  results,
  page('/settings', () => import('./pages/settings/SettingsPage')),
]);

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultErrorComponent: PageError,
  defaultPendingComponent: PagePending,
  defaultNotFoundComponent: PageMissing,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
