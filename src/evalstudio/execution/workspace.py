"""A project opened for work: its config, its folder, what is registered, its store and its models."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.console import routed_output
from ..base.lazy_dataclass import dataclass
from ..base.networks import AddressCheck, no_metadata
from ..base.redaction import environment_secrets
from ..connectors.http_pool import HttpPool
from ..project.config import ProjectConfig, find_config, read_config, shared_variables
from ..project.secrets import SecretBox
from ..storage.opening import open_store
from ..telemetry.opening import TelemetrySource

# What only some commands need is imported where they do.
if TYPE_CHECKING:
    from ..cassettes import Cassette
    from ..connectors.contract import ConnectorDefinition, ConnectorSettings, ProjectScope
    from ..conversation.preparation import Services
    from ..llm.client import Llm
    from ..plugins import PluginRegistry
    from ..project.changes import DefinitionContext
    from ..storage.store import SqlStore
    from ..telemetry.recording import Telemetry


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Where answers of models and agents are recorded, replayed from, or kept for the next time."""

    record: Path | None = None
    replay: Path | None = None
    cache: bool = False


class LazyPlugins:
    """The plugins of a project, imported when they are first needed: what needs none runs none of them."""

    def __init__(self, config_path: Path | None, *, tolerant: bool) -> None:
        self.config_path = config_path
        self.problems: dict[str, str] | None = {} if tolerant else None
        self.is_loaded = False

    @cached_property
    def registry(self) -> PluginRegistry:
        from ..plugins import create_registry, load_plugins

        # What a plugin prints while it is imported must not end up in what a command prints.
        with redirect_stdout(sys.stderr):
            path = self.config_path
            registry = load_plugins(path, problems=self.problems) if path else create_registry()
        self.is_loaded = True
        return registry

    async def close(self) -> None:
        if self.is_loaded:
            from ..connectors.session import close_connectors

            await close_connectors(self.registry.loaded_connectors())


@dataclass(slots=True)
class Workspace:
    """Everything one process needs to work on a project."""

    config: ProjectConfig
    folder: Path
    plugins: LazyPlugins
    store: SqlStore
    llm: Llm | None
    http: HttpPool
    box: SecretBox
    cassette: Cassette | None = None
    variables: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    """What nobody may read in an answer, whoever is asked: keys of models, secrets of the environment."""
    telemetry_source: TelemetrySource | None = None

    @property
    def registry(self) -> PluginRegistry:
        """What is registered here; the plugins are loaded when somebody asks for it first."""
        return self.plugins.registry

    @property
    def plugin_problems(self) -> Mapping[str, str]:
        """What is wrong with which plugin, where the project is open all the same."""
        return self.plugins.problems or {}

    @property
    def config_path(self) -> Path | None:
        """The config file, where there is one."""
        return self.plugins.config_path.resolve() if self.plugins.config_path else None

    @property
    def telemetry(self) -> Telemetry | None:
        """What tells of runs, where that is asked for; opened with the first question for it."""
        return self.telemetry_source.opened if self.telemetry_source is not None else None

    @property
    def has_model(self) -> bool:
        return self.config.llm_settings is not None

    @property
    def usual_max_messages(self) -> int:
        """How long a conversation may be where its scenario sets no limit."""
        from ..conversation.preparation import USUAL_MAX_MESSAGES

        return self.config.defaults.max_messages or USUAL_MAX_MESSAGES

    @property
    def scope(self) -> ProjectScope:
        """What connectors of this project may reach on this machine."""
        from ..connectors.contract import ProjectScope

        return ProjectScope(self.folder, tuple(self.config.python_modules))

    def definition_context(self) -> DefinitionContext:
        from ..project.changes import DefinitionContext

        return DefinitionContext(self.registry, self.folder, self.box, self.variables)

    def agent_settings(
        self, connector_fields: Mapping[str, Any]
    ) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
        """What it takes to reach an agent, from a connector as it is stored; its secrets are opened."""
        from ..project.entities import Connector
        from ..project.validation import check_connector

        connector = Connector.model_validate(self.box.open(connector_fields))
        definition = check_connector(connector, self.registry)
        address = connector.base_url or ""
        return definition, definition.settings(connector.config, address, connector.headers, self.scope)

    def services(self) -> Services:
        from ..conversation.preparation import Services
        from ..llm.embeddings import embedder_of

        return Services(self.llm, embedder_of(self.llm), self.config.limits)


@asynccontextmanager
async def open_workspace(
    config_path: Path | None = None,
    options: ModelOptions | None = None,
    *,
    address_check: AddressCheck | None = None,
    tolerant: bool = False,
    lazy: bool = False,
    store: SqlStore | None = None,
    plugins: LazyPlugins | None = None,
) -> AsyncGenerator[Workspace]:
    """Open a project: that of the config file given, else of the nearest one, else this folder as it is.

    ``tolerant`` opens it even if a plugin cannot be loaded; ``plugin_problems`` then says why. ``lazy`` loads
    the plugins only when they are needed. A ``store`` or ``plugins`` that are given stay open afterwards.
    """
    path = config_path or find_config(Path.cwd())
    config = read_config(path) if path else ProjectConfig()
    folder = path.resolve().parent if path else Path.cwd()
    own_plugins = LazyPlugins(path, tolerant=tolerant)
    plugins = plugins or own_plugins
    if not lazy:
        _ = plugins.registry
    async with AsyncExitStack() as stack:
        stack.enter_context(routed_output())
        if store is None:
            store = await open_store(config.storage, folder)
            stack.push_async_callback(store.close)
        cassette = _cassette(options, stack)
        llm: Llm | None = None
        if config.llm_settings is not None:
            from ..llm.cache import AnswerCache
            from ..llm.client import Llm

            cache = AnswerCache(folder / "data" / "answers") if options and options.cache else None
            model = Llm(config.llm_settings, cache=cache, cassette=cassette, shared=store)
            llm = await stack.enter_async_context(model)
        pool = HttpPool(address_check=address_check or no_metadata(config.allowed_addresses))
        stack.push_async_callback(pool.close)
        stack.push_async_callback(own_plugins.close)
        box = SecretBox(folder / "data" / "secret.key")
        variables = shared_variables(path) if path else frozenset[str]()
        secrets = environment_secrets() | _model_keys(config)
        source = TelemetrySource(**config.telemetry.model_dump(), secrets=secrets)
        stack.push_async_callback(source.close)
        yield Workspace(config, folder, plugins, store, llm, pool, box, cassette, variables, secrets, source)


def _model_keys(config: ProjectConfig) -> frozenset[str]:
    if config.llm_settings is None:
        return frozenset()
    from ..llm.settings import known_secrets

    return frozenset(key for key in known_secrets(config.llm_settings) if key)


def _cassette(options: ModelOptions | None, stack: AsyncExitStack) -> Cassette | None:
    if options is None or not (options.record or options.replay):
        return None
    from ..cassettes import Cassette

    cassette = Cassette.replay(options.replay) if options.replay else Cassette.record(options.record or "")
    return stack.enter_context(cassette)
