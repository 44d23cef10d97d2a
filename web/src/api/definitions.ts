// Definitions: scenarios, personas, connectors and evals, and the types they are made of.
import { queryOptions } from '@tanstack/react-query';
import { client, dataOf, type Schemas, versionTag } from './client';
import { allPages, idempotencyKey, PAGE } from './queries';

export const evaluatorTypesQuery = queryOptions({
  queryKey: ['evaluator-types'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: () => dataOf(client.GET('/api/evaluator-types')),
});
type EvaluatorUses = Schemas['EvaluatorUses']['evaluators'];
export const gatesQuery = (evaluators: EvaluatorUses) =>
  queryOptions({
    queryKey: ['gates', evaluators],
    staleTime: Number.POSITIVE_INFINITY,
    // What is being typed keeps its last answer until the next one is in.
    placeholderData: (before: Schemas['Gates'] | undefined) => before,
    queryFn: () => dataOf(client.POST('/api/evaluator-types/gates', { body: { evaluators } })),
  });
export const connectorTypesQuery = queryOptions({
  queryKey: ['connector-types'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: () => dataOf(client.GET('/api/connectors/types')),
});

// Scenarios

export const scenariosQuery = queryOptions({
  queryKey: ['scenarios', 'all'],
  queryFn: () =>
    allPages((cursor) =>
      dataOf(client.GET('/api/scenarios', { params: { query: { cursor, limit: PAGE } } })),
    ),
});
export const scenarioQuery = (id: string) =>
  queryOptions({
    queryKey: ['scenarios', id],
    queryFn: () => dataOf(client.GET('/api/scenarios/{id}', { params: { path: { id } } })),
  });
export const scenarioYamlQuery = (id: string) =>
  queryOptions({
    queryKey: ['scenarios', id, 'yaml'],
    queryFn: () => dataOf(client.GET('/api/scenarios/{id}/yaml', { params: { path: { id } } })),
  });
/** A scenario that says what was said in a run; nothing is stored. */
export const draftedScenarioQuery = (runId: string) =>
  queryOptions({
    queryKey: ['scenarios', 'drafted', runId],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => dataOf(client.POST('/api/runs/{id}/scenario', { params: { path: { id: runId } } })),
  });
/** The cases in the text of a CSV or JSONL file; nothing is stored. */
export const readCases = (name: string, text: string) =>
  dataOf(client.POST('/api/cases', { body: { name, text } }));
export const createScenario = (body: Schemas['Scenario']) =>
  dataOf(client.POST('/api/scenarios', { body, params: { header: idempotencyKey() } }));
export const updateScenario = (id: string, version: number, body: Schemas['Scenario']) =>
  dataOf(
    client.PUT('/api/scenarios/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteScenario = (id: string) =>
  dataOf(client.DELETE('/api/scenarios/{id}', { params: { path: { id } } }));

// Personas

export const personasQuery = queryOptions({
  queryKey: ['personas', 'all'],
  queryFn: () =>
    allPages((cursor) => dataOf(client.GET('/api/personas', { params: { query: { cursor, limit: PAGE } } }))),
});
export const personaQuery = (id: string) =>
  queryOptions({
    queryKey: ['personas', id],
    queryFn: () => dataOf(client.GET('/api/personas/{id}', { params: { path: { id } } })),
  });
export const createPersona = (body: Schemas['Persona']) =>
  dataOf(client.POST('/api/personas', { body, params: { header: idempotencyKey() } }));
export const updatePersona = (id: string, version: number, body: Schemas['Persona']) =>
  dataOf(
    client.PUT('/api/personas/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deletePersona = (id: string) =>
  dataOf(client.DELETE('/api/personas/{id}', { params: { path: { id } } }));

// Connectors

export const connectorsQuery = queryOptions({
  queryKey: ['connectors', 'all'],
  queryFn: () =>
    allPages((cursor) =>
      dataOf(client.GET('/api/connectors', { params: { query: { cursor, limit: PAGE } } })),
    ),
});
export const connectorQuery = (id: string) =>
  queryOptions({
    queryKey: ['connectors', id],
    queryFn: () => dataOf(client.GET('/api/connectors/{id}', { params: { path: { id } } })),
  });
export const createConnector = (body: Schemas['Connector']) =>
  dataOf(client.POST('/api/connectors', { body, params: { header: idempotencyKey() } }));
export const updateConnector = (id: string, version: number, body: Schemas['Connector']) =>
  dataOf(
    client.PUT('/api/connectors/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteConnector = (id: string) =>
  dataOf(client.DELETE('/api/connectors/{id}', { params: { path: { id } } }));
export const testConnector = (id: string) =>
  dataOf(client.POST('/api/connectors/{id}/test', { params: { path: { id } } }));

// Evals

export const evalsQuery = queryOptions({
  queryKey: ['evals', 'all'],
  queryFn: () =>
    allPages((cursor) => dataOf(client.GET('/api/evals', { params: { query: { cursor, limit: PAGE } } }))),
});
export const evalQuery = (id: string) =>
  queryOptions({
    queryKey: ['evals', id],
    queryFn: () => dataOf(client.GET('/api/evals/{id}', { params: { path: { id } } })),
  });
export const createEval = (body: Schemas['Eval']) =>
  dataOf(client.POST('/api/evals', { body, params: { header: idempotencyKey() } }));
export const updateEval = (id: string, version: number, body: Schemas['Eval']) =>
  dataOf(
    client.PUT('/api/evals/{id}', {
      body,
      params: { path: { id }, header: { 'If-Match': versionTag(version) } },
    }),
  );
export const deleteEval = (id: string) =>
  dataOf(client.DELETE('/api/evals/{id}', { params: { path: { id } } }));
