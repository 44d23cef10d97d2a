"""``python``: a function in this process, of a module the config file lists; and any callable as an agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import Field

from ..base.concurrency import blocking
from ..base.functions import FUNCTION_NAME, import_function
from ..configs import TYPE_NAME
from .calling import call
from .connection import CallLimits
from .contract import ConnectorContext, ConnectorDefinition, ConnectorError, ProjectScope, define_connector


class PythonConfig(CallLimits):
    """Which function answers."""

    function: str = Field(
        pattern=FUNCTION_NAME,
        description="module:name, sync or async, called with the messages or with a ConnectorContext",
    )


@define_connector(type="python", label="Python Function")
async def python_agent(ctx: ConnectorContext[PythonConfig]) -> Any:
    """Calls a function in this process. Its module must be listed in the project's config file."""
    known: dict[str, Callable[..., Any]] = ctx.run.memory.setdefault("python.agents", {})
    agent = known.get(ctx.config.function)
    if agent is None:
        # Importing a module takes its time once, and it is not the agent's.
        with ctx.clock.paused():
            function = await _find(ctx.config.function, ctx.connector.project)
        agent = known[ctx.config.function] = agent_of(function)
    return await agent(ctx)


async def _find(reference: str, project: ProjectScope | None) -> Callable[..., Any]:
    module = reference.partition(":")[0]
    listed = project.python_modules if project else ()
    if project is None or module not in listed:
        raise ConnectorError(
            f'the module "{module}" is not allowed: only functions of modules listed in the project\'s '
            f"config file are called (listed: {', '.join(listed) or 'none'})"
        )
    # Importing may take seconds; the other runs go on meanwhile.
    function = await blocking.run(lambda: import_function(reference, project.folder, ConnectorError))
    home = getattr(function, "__module__", None) or type(function).__module__
    if home not in listed:
        raise ConnectorError(f'"{reference}" comes from the module "{home}", which is not listed')
    return function


_CONTEXT_NAMES = frozenset({"ctx", "context"})


def callable_connector(function: Callable[..., Any]) -> ConnectorDefinition:
    """A connector of any callable of messages or of a context, sync or async."""
    name = getattr(function, "__name__", "").strip("_").replace("_", "-")
    name = name if TYPE_NAME.match(name) else "callable"
    return ConnectorDefinition(
        type=name, function=agent_of(function), label=name, module=getattr(function, "__module__", "") or ""
    )


def agent_of(function: Callable[..., Any]) -> Callable[[ConnectorContext[Any]], Any]:
    """The function as a connector calls one."""
    wants = _wants_context(function)

    async def agent(ctx: ConnectorContext[Any]) -> Any:
        return await call(function, ctx if wants else ctx.messages, clock=ctx.clock)

    return agent


def _wants_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is a context, by its annotation or its name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters:
        return False
    hint: Any = parameters[0].annotation
    written = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return ConnectorContext.__name__ in written or parameters[0].name in _CONTEXT_NAMES
