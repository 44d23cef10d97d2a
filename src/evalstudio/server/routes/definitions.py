"""``/api/personas``, ``/api/scenarios``, ``/api/connectors``, ``/api/evals`` and ``/api/monitors``.

All five kinds are listed, made, read, replaced and deleted alike. Connectors can be called besides, and a
scenario shows what its simulated user is told.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from time import perf_counter
from typing import Annotated, Any, cast

from fastapi import Depends, Path, Query, Response
from pydantic import create_model

from ...connectors.contract import ConnectorError
from ...conversation.definitions import Case
from ...conversation.preparation import prepare
from ...conversation.simulation import user_prompt
from ...execution.connector_test import agent_session, check_agent
from ...project.changes import RefusedDefinition
from ...project.documents import MODELS, STORED, AnyStored, DefinitionKind, check_stored, document_of
from ...project.validation import cases_in, cases_of
from ...project.yaml_text import to_yaml
from ...storage.contract import Filters
from ...storage.errors import NotFound
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import (
    ETAG,
    ExpectedVersion,
    OnceDep,
    PagingDep,
    PeriodDep,
    StudioDep,
    TextQuery,
    deleted_since,
)
from ..shapes.base import Identity, PageOf, Text
from ..shapes.system import (
    CasesText,
    ConnectorTest,
    ConnectorType,
    DefinitionText,
    Invocation,
    InvocationResult,
    Prompt,
)

router = ApiRouter(route_class=JsonRoute)

DefinitionId = Annotated[Identity, Path(alias="id")]


@router.get("/definitions/refused", tags=["definitions"], operation_id="listRefusedDefinitions")
async def list_refused(studio: StudioDep) -> list[RefusedDefinition]:
    """Definitions that cannot be run as they are, such as those an earlier version still took."""
    return await studio.definitions.refused()


@router.get("/connectors/types", tags=["connectors"], operation_id="listConnectorTypes")
async def list_types(studio: StudioDep) -> list[ConnectorType]:
    """Every kind of connector there is, built in or brought by a plugin."""
    return [ConnectorType.model_validate(one) for one in studio.workspace.registry.list_connector_types()]


@router.post(
    "/connectors/{id}/test", tags=["connectors"], operation_id="testConnector", responses=refusals(404)
)
async def test(studio: StudioDep, definition_id: DefinitionId) -> ConnectorTest:
    """Find out whether the agent is there and answers."""
    connector = await studio.store.get("connector", definition_id)
    check = await check_agent(studio.workspace, connector)
    return ConnectorTest(
        success=check.success, latency_ms=check.latency_ms, response=check.response, error=check.error
    )


@router.post(
    "/connectors/{id}/invoke",
    tags=["connectors"],
    operation_id="invokeConnector",
    responses=refusals(404, 413, 415),
)
async def invoke(studio: StudioDep, definition_id: DefinitionId, body: Invocation) -> InvocationResult:
    """Say something to the agent."""
    session = agent_session(studio.workspace, await studio.store.get("connector", definition_id))
    start = perf_counter()
    try:
        reply = await session.invoke(body.messages, body.messages)
    except ConnectorError as error:
        return InvocationResult(success=False, latency_ms=(perf_counter() - start) * 1000, error=str(error))
    return InvocationResult(
        success=True,
        latency_ms=reply.latency_ms,
        messages=reply.messages,
        tokens_usage=reply.tokens_usage,
        usage_missing=reply.usage_missing,
        redacted=reply.redacted,
    )


@router.get(
    "/scenarios/{id}/prompt", tags=["scenarios"], operation_id="getScenarioPrompt", responses=refusals(404)
)
async def get_prompt(
    studio: StudioDep,
    definition_id: DefinitionId,
    persona_id: Annotated[Identity | None, Query(alias="personaId")] = None,
) -> Prompt:
    """What the simulated user of a scenario is told, as one of its personas; its first case filled in."""
    scenario = await studio.store.get("scenario", definition_id)
    persona = await studio.store.get("persona", persona_id) if persona_id else None
    for entity in filter(None, (scenario, persona)):
        check_stored(entity)
    cases = cases_of(scenario, studio.workspace.folder)
    plan = prepare(
        scenario, studio.workspace.registry, case=cases[0] if cases else None, persona=persona, has_model=True
    )
    return Prompt(prompt=user_prompt(plan))


@router.get(
    "/scenarios/{id}/yaml", tags=["scenarios"], operation_id="getScenarioYaml", responses=refusals(404)
)
async def get_yaml(studio: StudioDep, definition_id: DefinitionId) -> DefinitionText:
    """A scenario as a file has it, to keep it beside the agent's code and apply it from there."""
    scenario = await studio.store.get("scenario", definition_id)
    names = {one: (await studio.store.get("persona", one)).name for one in scenario.persona_ids}
    document = document_of("scenario", scenario, names).shown()
    return DefinitionText(text=to_yaml({"scenarios": [document.body]}))


@router.post("/cases", tags=["scenarios"], operation_id="readCases")
async def read_cases(body: CasesText) -> list[Case]:
    """The cases in the text of a CSV or JSONL file, to put into a scenario; nothing is stored."""
    return cases_in(FilePath(body.name), body.text)


async def _tags(
    tag: Annotated[list[Text] | None, Query(max_length=20, description="With all of these tags")] = None,
) -> list[str]:
    return tag or []


async def _no_tags() -> list[str]:
    return []


def _add_routes(kind: DefinitionKind, noun: str, note: str = "") -> None:
    """List, create, get, update and delete for one kind; ``noun`` has its article, ``note`` is on pages."""
    shape, newest = STORED[kind], f"{kind.title()}s, newest first."
    base = cast("type[PageOf[Any]]", PageOf.__class_getitem__(shape))
    page_shape = create_model(f"{kind.title()}Page", __base__=base, __doc__=f"{newest[:-1]}{note}.")

    async def list_all(
        studio: StudioDep, paging: PagingDep, period: PeriodDep, tags: Any, text: TextQuery = None
    ) -> Any:
        filters = Filters(**period, text=text, tags=tags)
        page = await studio.definitions.page(kind, filters, **paging)
        return page_shape.model_construct(items=page.items, cursor=page.cursor)

    async def create(studio: StudioDep, body: Any, response: Response, once: OnceDep) -> Any:
        try:
            return _with_etag(response, await studio.definitions.create(kind, body, once=once))
        except NotFound as error:
            raise deleted_since(error) from None

    async def get(studio: StudioDep, definition_id: DefinitionId, response: Response) -> Any:
        return _with_etag(response, await studio.definitions.get(kind, definition_id))

    async def update(
        studio: StudioDep,
        definition_id: DefinitionId,
        body: Any,
        response: Response,
        expected: ExpectedVersion,
    ) -> Any:
        updated = await studio.definitions.update(kind, definition_id, body, expected=expected)
        return _with_etag(response, updated)

    async def delete(studio: StudioDep, definition_id: DefinitionId, expected: ExpectedVersion) -> None:
        await studio.definitions.delete(kind, definition_id, expected=expected)

    def add(method: str, path: str, endpoint: Callable[..., Any], verb: str, text: str, **more: Any) -> None:
        thing = kind.title() + ("s" if verb == "list" else "")
        router.add_api_route(
            f"/{kind}s{path}",
            endpoint,
            methods=[method],
            tags=[f"{kind}s"],
            operation_id=verb + thing,
            summary=f"{verb.title()} {thing}",
            description=text,
            **more,
        )

    # FastAPI reads the shapes of requests from the annotations, and these differ by kind.
    list_all.__annotations__["tags"] = Annotated[Any, Depends(_tags if kind == "scenario" else _no_tags)]
    create.__annotations__["body"] = update.__annotations__["body"] = MODELS[kind]
    added, read = {201: ETAG, **refusals(409, 413, 415)}, {200: ETAG, **refusals(404)}
    replaced = {200: ETAG, **refusals(404, 409, 412, 413, 415)}
    deleted = {"status_code": 204, "responses": refusals(404, 409, 412)}
    add("GET", "", list_all, "list", newest, response_model=page_shape)
    add("POST", "", create, "create", f"Make {noun}.", response_model=shape, status_code=201, responses=added)
    add("GET", "/{id}", get, "get", f"One {kind}.", response_model=shape, responses=read)
    add("PUT", "/{id}", update, "update", f"Replace {noun}.", response_model=shape, responses=replaced)
    add("DELETE", "/{id}", delete, "delete", f"Delete {noun}. What is in use stays.", **deleted)


def _with_etag(response: Response, entity: AnyStored) -> AnyStored:
    response.headers["ETag"] = f'"v{entity.version}"'
    return entity


_add_routes("connector", "a connector", "; secrets masked")
_add_routes("persona", "a persona")
_add_routes("scenario", "a scenario")
_add_routes("eval", "an eval")
_add_routes("monitor", "a monitor", "; secrets masked")
