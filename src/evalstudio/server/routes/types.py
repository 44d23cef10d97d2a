"""What is registered here: evaluator types, plugins, model providers."""

from __future__ import annotations

from contextlib import suppress

from fastapi import APIRouter

from ...llm.errors import ModelError
from ...llm.providers import find_access, origin
from ...llm.settings import LlmSettings
from ..bodies import JsonRoute
from ..errors import refusals
from ..shapes.system import EvaluatorType, LoadedPlugin, ModelProvider, Models, Providers
from ..studio import StudioDep

router = APIRouter(tags=["types"], route_class=JsonRoute)


@router.get("/evaluator-types", operation_id="listEvaluatorTypes", responses=refusals())
async def list_evaluator_types(studio: StudioDep) -> list[EvaluatorType]:
    """Every kind of evaluator there is, built in or brought by a plugin."""
    return [EvaluatorType.model_validate(one) for one in studio.workspace.registry.list_evaluator_types()]


@router.get("/plugins", operation_id="listPlugins", responses=refusals())
async def list_plugins(studio: StudioDep) -> list[LoadedPlugin]:
    """The plugins that were loaded and what each brought, and those that could not be."""
    workspace = studio.workspace
    loaded = [LoadedPlugin.model_validate(one.to_json()) for one in workspace.registry.plugins]
    broken = [LoadedPlugin(name=name, error=told) for name, told in workspace.plugin_problems.items()]
    return [*loaded, *broken]


@router.get("/llm/providers", operation_id="listModelProviders", responses=refusals())
async def list_providers(studio: StudioDep) -> Providers:
    """The model providers of the config file and which model plays which part; never a key."""
    settings = studio.workspace.config.llm_settings
    if settings is None:
        return Providers(items=[], models=None)
    names = dict.fromkeys([settings.provider, *settings.providers])
    return Providers(
        items=[_provider(settings, name) for name in names],
        models=Models.model_validate(settings.models.model_dump()),
    )


def _provider(settings: LlmSettings, name: str) -> ModelProvider:
    given = settings.access(name).base_url
    has_key = False
    with suppress(ModelError):
        find_access(settings, name)
        has_key = True
    return ModelProvider(
        name=name,
        address=origin(given) if given else None,
        is_default=name == settings.provider,
        has_key=has_key,
    )
