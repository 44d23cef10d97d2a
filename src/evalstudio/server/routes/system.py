"""The server itself: health, status, logging in, and what is registered here."""

from __future__ import annotations

from typing import Literal

from fastapi import Request, Response

from ...base.addresses import shown_address
from ...conversation.preparation import gates_of
from ...llm.settings import LlmSettings, ModelError, find_access
from ...storage.contract import Filters
from ...version import __version__
from ..api_router import ApiRouter
from ..errors import ApiError, refusals
from ..middleware import JsonRoute
from ..readiness import problem_of
from ..requests import AccessDep, StudioDep
from ..security import address_of, facts_of_request
from ..sessions import COOKIE, LIFETIME
from ..shapes.system import (
    Credentials,
    EvaluatorType,
    EvaluatorUses,
    Gates,
    Health,
    IntakeStatus,
    LoadedPlugin,
    ModelProvider,
    Models,
    ProcessorStatus,
    Providers,
    Readiness,
    Session,
    Status,
)

router = ApiRouter(tags=["system"], route_class=JsonRoute)


@router.get("/health", operation_id="getHealth")
async def get_health() -> Health:
    """The server answers. No token is needed."""
    return Health()


@router.get("/ready", operation_id="getReadiness")
async def get_readiness(studio: StudioDep, request: Request) -> Readiness:
    """The database answers and takes what is written, what works in the background does, and nothing waits
    for a thread.

    No token is needed.
    """
    problem = await problem_of(studio, request.app.state.loop_watch)
    if problem is not None:
        raise ApiError(503, f"{problem}.")
    return Readiness()


@router.get("/status", operation_id="getStatus")
async def get_status(studio: StudioDep, request: Request) -> Status:
    """The project and its server."""
    config, processing, intake = studio.workspace.config, studio.processing, studio.intake
    waiting = await studio.store.runs(Filters(status="queued"), limit=1)
    return Status(
        name=config.name,
        version=__version__,
        storage=config.storage.type,
        has_model=studio.workspace.has_model,
        token_required=studio.policy.token_mode,
        processor=ProcessorStatus(
            enabled=processing.enabled, running=processing.running, problem=processing.problem
        ),
        intake=IntakeStatus(
            enabled=intake is not None,
            running=intake is not None and intake.running,
            problem=intake.problem if intake is not None else None,
        ),
        problem=await problem_of(studio, request.app.state.loop_watch),
        queued=bool(waiting.items),
    )


@router.get("/session", operation_id="getSession")
async def get_session(access: AccessDep, request: Request) -> Session:
    """Whether a token is needed and was shown. No token is needed to ask."""
    known = access.is_known(facts_of_request(request.scope), address_of(request.scope))
    return Session(required=access.token is not None, authenticated=known)


@router.post("/session", operation_id="logIn", responses=refusals(413, 415))
async def log_in(access: AccessDep, body: Credentials, request: Request, response: Response) -> Session:
    """Show the token once and carry a cookie from then on."""
    if access.token is not None:
        session = access.log_in(address_of(request.scope), body.token)
        if session is None:
            raise ApiError(401, "This is not the token of this server.")
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, session, max_age=LIFETIME, httponly=True, samesite="strict", secure=secure
        )
    return Session(required=access.token is not None, authenticated=True)


@router.delete("/session", operation_id="logOut", status_code=204)
async def log_out(access: AccessDep, request: Request, response: Response) -> None:
    """End the session: its cookie is worth nothing from then on, wherever a copy of it is."""
    await access.log_out(request.cookies.get(COOKIE))
    secure = request.url.scheme == "https"
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=secure)


types_router = ApiRouter(tags=["types"], route_class=JsonRoute)


@types_router.get("/evaluator-types", operation_id="listEvaluatorTypes")
async def list_evaluator_types(studio: StudioDep) -> list[EvaluatorType]:
    """Every kind of evaluator there is, built in or brought by a plugin."""
    return [EvaluatorType.model_validate(one) for one in studio.workspace.registry.list_evaluator_types()]


@types_router.post("/evaluator-types/gates", operation_id="findGates", responses=refusals(413, 415))
async def find_gates(studio: StudioDep, body: EvaluatorUses) -> Gates:
    """The gate each of these evaluators has with the config it is given."""
    return Gates(gates=gates_of(body.evaluators, studio.workspace.registry))


@types_router.get("/plugins", operation_id="listPlugins")
async def list_plugins(studio: StudioDep) -> list[LoadedPlugin]:
    """The plugins that were loaded and what each brought, and those that could not be."""
    workspace = studio.workspace
    loaded = [LoadedPlugin.model_validate(one.to_json()) for one in workspace.registry.plugins]
    broken = [LoadedPlugin(name=name, error=problem) for name, problem in workspace.plugin_problems.items()]
    return [*loaded, *broken]


@types_router.get("/llm/providers", operation_id="listModelProviders")
async def list_providers(studio: StudioDep) -> Providers:
    """The model providers of the config file and which model plays which part; never a key."""
    settings = studio.workspace.config.llm_settings
    if settings is None:
        return Providers(items=[], models=None)
    names = dict.fromkeys([settings.provider, *settings.providers])
    items = [_provider(settings, name) for name in names]
    return Providers(items=items, models=Models.model_validate(settings.models.model_dump()))


def _provider(settings: LlmSettings, name: str) -> ModelProvider:
    url, problem = settings.access(name).base_url, None
    key: Literal["set", "needed", "not needed"] = "needed"
    try:
        key = "not needed" if find_access(settings, name).secret is None else "set"
    except ModelError as error:
        problem = str(error)
    return ModelProvider(
        name=name,
        address=shown_address(url, path=False) if url else None,
        is_default=name == settings.provider,
        has_key=key != "needed",
        key=key,
        problem=problem,
    )
