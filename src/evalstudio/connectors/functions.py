"""Plain Python functions as agents: called with the messages, or with the context if they ask for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..configs import TYPE_NAME
from .calling import call
from .contract import ConnectorContext, ConnectorDefinition

_CONTEXT_NAMES = frozenset({"ctx", "context"})


def callable_connector(function: Callable[..., Any]) -> ConnectorDefinition:
    """A connector of any callable of messages or of a context, sync or async."""
    given = getattr(function, "__name__", "").strip("_").replace("_", "-")
    name = given if TYPE_NAME.match(given) else "callable"
    return ConnectorDefinition(
        type=name, function=agent_of(function), label=name, module=getattr(function, "__module__", "") or ""
    )


def agent_of(function: Callable[..., Any]) -> Callable[[ConnectorContext[Any]], Any]:
    """The function as a connector calls one."""
    wants = wants_context(function)

    async def agent(ctx: ConnectorContext[Any]) -> Any:
        return await call(function, ctx if wants else ctx.messages)

    return agent


def wants_context(function: Callable[..., Any]) -> bool:
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
