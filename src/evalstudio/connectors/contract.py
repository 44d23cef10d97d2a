"""What a connector sees and what it answers, and how a function becomes a connector.

A connector carries the conversation to one agent and brings back only what the agent added, in OpenAI's
shape. Hooks beside it test it, prepare a run, read the agent's end state, and release what it holds.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload
from uuid import UUID, uuid5

from pydantic import BaseModel

from ..base.concurrency import Clock
from ..base.lazy_dataclass import dataclass
from ..base.schemas import Schema
from ..configs import (
    ConfigShape,
    check_options,
    config_of,
    first_paragraph,
    label_from,
    locals_of_caller,
    module_of_caller,
    read_mapping_form,
    type_of,
)
from ..evaluators.results import Attempt
from ..messages import Message, TokensUsage
from .connection import CallLimits, RetrySettings, with_call_limits

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from .connection import AgentConnection


class ConnectorError(Exception):
    """The agent could not be reached or did not answer as it should.

    ``again`` says that another attempt may help and does no harm, ``retry_after`` how many seconds the agent
    asked to wait. ``cause`` is what ``retry.on`` may name: connect, closed, timeout or a status. ``attempts``
    are all that were made, once there were several. ``interrupted`` says that it is not the
    agent's fault: this process was stopped while the agent was asked.
    """

    def __init__(
        self,
        message: str,
        *,
        again: bool = False,
        retry_after: float | None = None,
        cause: str | None = None,
        attempts: Sequence[Attempt] = (),
    ) -> None:
        super().__init__(message)
        self.again = again
        self.retry_after = retry_after
        self.cause = cause
        self.attempts = list(attempts)
        self.traceback: str | None = None
        self.interrupted = False


C = TypeVar("C")
Headers = Mapping[str, str]


@dataclass(slots=True, frozen=True)
class ProjectScope:
    """What connectors may reach on this machine: files of one folder, functions of listed modules."""

    folder: Path
    python_modules: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class ConnectorSettings(Generic[C]):
    """Where the agent is and how to call it."""

    config: C
    base_url: str = ""
    headers: Headers = field(default_factory=dict[str, str])
    project: ProjectScope | None = None
    known: dict[object, Any] = field(default_factory=dict[object, Any], init=False, repr=False, compare=False)
    """What sessions have found out about these settings, for the sessions after them."""


_SESSIONS = UUID("5f0c6f0e-7f5b-4d5e-9a53-3e4c7a1d2b60")


@dataclass(slots=True)
class RunInfo:
    """The run a call belongs to. ``thread_id`` is the agent's own, once it has one.

    ``session_id`` is a UUID that stays the same from setup to the last turn and belongs to this attempt at
    the run alone. ``memory`` is the connector's, to keep what it must know at the next call of the same run.
    """

    id: str
    thread_id: str | None = None
    turn: int = 1
    thread_message_count: int = 0
    scenario: str = ""
    case: str = ""
    memory: dict[str, Any] = field(default_factory=dict[str, Any])
    case_values: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def session_id(self) -> str:
        # Made of the id, so that every process that works on the attempt comes to the same.
        return str(uuid5(_SESSIONS, self.id))

    def call_key(self, name: str) -> str:
        """What tells one call of this attempt at the run from the others, the same when it is sent again."""
        return str(uuid5(_SESSIONS, f"{self.id}\n{self.turn}\n{name}"))


@dataclass(slots=True)
class ConnectorContext(Generic[C]):
    """What a connector sees on one call."""

    connector: ConnectorSettings[C]
    messages: list[Message]
    new_messages: list[Message]
    run: RunInfo
    extra_headers: Headers = field(default_factory=dict[str, str])
    _connection: AgentConnection | None = None
    _call: str = "invoke"

    @property
    def config(self) -> C:
        return self.connector.config

    @property
    def headers(self) -> dict[str, str]:
        """The connector's headers with the persona's over them, names compared without case."""
        return merge_headers(self.connector.headers, self.extra_headers)

    @property
    def http(self) -> ClientSession:
        """A pooled client shared by all calls."""
        return self.connection.http

    @property
    def connection(self) -> AgentConnection:
        """What the session prepared for calling the agent."""
        if self._connection is None:
            raise ConnectorError("no HTTP client is open here")
        return self._connection

    @property
    def idempotency_key(self) -> str:
        """The same whenever this call is made again, another for every other call."""
        return self.run.call_key(self._call)

    def request_key(self, request: str) -> str:
        """The key of one request of this call; a second one like it has its own."""
        sent = self.connection.requests
        sent[request] += 1
        return self.run.call_key(f"{self._call}\n{request}\n{sent[request]}")

    @property
    def clock(self) -> Clock:
        """The agent's time on this call."""
        return self._connection.clock if self._connection is not None else Clock()


def merge_headers(under: Headers, over: Headers) -> dict[str, str]:
    """Both, the second winning, names compared without case."""
    merged = {name.lower(): (name, value) for name, value in under.items()}
    merged |= {name.lower(): (name, value) for name, value in over.items()}
    return dict(merged.values())


@dataclass(slots=True)
class ConnectorResponse:
    """What the agent added: only the new messages. With ``success=False`` the call failed with ``error``."""

    messages: Sequence[Message | Mapping[str, Any]] = ()
    latency_ms: float | None = None
    tokens_usage: TokensUsage | Mapping[str, Any] | None = None
    thread_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    success: bool = True
    error: str | None = None
    first_token_ms: float | None = None


Returned = ConnectorResponse | str | Message | Mapping[str, Any] | Sequence[Message | Mapping[str, Any]]
Invoke = Callable[[ConnectorContext[Any]], Returned | Awaitable[Returned]]
Hook = Callable[[ConnectorContext[Any]], Any]


@dataclass(slots=True)
class ConnectorDefinition:
    """A kind of connector: what it is called, what it needs, the function that calls the agent, its hooks."""

    type: str
    function: Invoke
    label: str
    description: str = ""
    config: ConfigShape = field(default_factory=lambda: ConfigShape(with_call_limits(None)))
    module: str = ""
    plugin: str = ""
    needs_address: bool = False
    timeout: float | None = None
    retry: RetrySettings | None = None
    test_hook: Hook | None = None
    setup_hook: Hook | None = None
    state_hook: Hook | None = None
    close_hook: Callable[[], Any] | None = None

    def __call__(self, ctx: ConnectorContext[Any]) -> Any:
        return self.function(ctx)

    def test(self, hook: Hook) -> Hook:
        """Says whether the agent is there; without it a one-message call does."""
        self.test_hook = hook
        return hook

    def setup(self, hook: Hook) -> Hook:
        """Runs before a run: reset a sandbox, seed data."""
        self.setup_hook = hook
        return hook

    def state(self, hook: Hook) -> Hook:
        """Runs after a run and answers the agent's end state, a dict."""
        self.state_hook = hook
        return hook

    def close(self, hook: Callable[[], Any]) -> Callable[[], Any]:
        """Releases what the connector holds."""
        self.close_hook = hook
        return hook

    def settings(
        self,
        config: Mapping[str, Any] | None = None,
        base_url: str = "",
        headers: Headers | None = None,
        project: ProjectScope | None = None,
    ) -> ConnectorSettings[Any]:
        """Where the agent is and how to call it, with the config checked."""
        return ConnectorSettings(self.config.parse(self.type, config), base_url, headers or {}, project)

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "label": self.label,
            "description": self.description,
            "configSchema": self.config.schema,
        }


@overload
def define_connector(type: Invoke | Mapping[str, Any], /) -> ConnectorDefinition: ...
@overload
def define_connector(
    type: str | None = None,
    *,
    label: str | None = None,
    description: str | None = None,
    config: type[BaseModel] | Schema | None = None,
    needs_address: bool = False,
    timeout: float | None = None,
    retry: RetrySettings | Mapping[str, Any] | None = None,
) -> Callable[[Invoke], ConnectorDefinition]: ...
def define_connector(
    type: str | Invoke | Mapping[str, Any] | None = None,
    **options: Any,
) -> ConnectorDefinition | Callable[[Invoke], ConnectorDefinition]:
    """Make a connector of a function. What is not given is read off the function itself.

    With ``needs_address`` a connector of this type is refused without a ``baseUrl``. ``timeout`` (seconds)
    and ``retry`` (as in a config) hold for connectors of this type whose config does not set its own. Also
    taken: a mapping with ``invoke``, the options, and hooks (``test``, ``setup``, ``state``, ``close``).
    """
    names, subject = locals_of_caller(), cast(Any, type)
    check_options("define_connector", options, _OPTIONS)
    _limits(options)
    if isinstance(subject, Mapping):
        known = ("type", *_OPTIONS, *_HOOKS)
        function, fields = read_mapping_form("define_connector", type, "invoke", known)
        return _define(function, fields.pop("type", None), fields, names, module_of_caller())
    if inspect.isclass(subject):
        message = "is a class; decorate the function that calls the agent"
        raise TypeError(f"define_connector: {subject.__name__} {message}")
    if callable(subject):
        return _define(cast(Invoke, subject), None, options, names)
    return lambda function: _define(function, subject, options, names)


_OPTIONS = ("label", "description", "config", "needs_address", "timeout", "retry")
_HOOKS = ("test", "setup", "state", "close")


def _limits(options: Mapping[str, Any]) -> CallLimits:
    return CallLimits.model_validate(
        {"timeout_seconds": options.get("timeout"), "retry": options.get("retry")}
    )


def _define(
    function: Invoke,
    type_name: str | None,
    options: Mapping[str, Any],
    names: Mapping[str, Any],
    module: str = "",
) -> ConnectorDefinition:
    name = type_of(function, type_name)
    config = options.get("config")
    shape = config_of(function, ConnectorContext, names) if config is None else config
    limits = _limits(options)
    settled: dict[str, Any] = {
        "label": options.get("label") or label_from(name),
        "description": options.get("description") or first_paragraph(function),
        "config": ConfigShape(with_call_limits(shape)),
        "timeout": limits.timeout_seconds,
        "retry": limits.retry,
        "module": module or function.__module__,
    }
    settings = {key: item for key, item in options.items() if key not in (*settled, *_HOOKS)}
    hooks = {f"{hook}_hook": options[hook] for hook in _HOOKS if hook in options}
    return ConnectorDefinition(name, function, **settled, **settings, **hooks)
