"""Running the server: open the project, listen, work off the queue, and stop without losing anything."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn

from ..base.addresses import is_local
from ..base.lazy_dataclass import dataclass
from ..base.networks import public_only
from ..base.signals import stop_on_signals
from ..execution.alarm_delivery import AlarmDeliveryTask
from ..execution.intake import IntakeTask
from ..execution.monitoring import MonitorReviews
from ..execution.processor import ProcessorTask
from ..execution.receiving import Receiver, missing_extra
from ..execution.retention import retaining
from ..execution.workspace import open_workspace
from ..project.config import ProjectConfig, find_config, read_config
from .app import create_app
from .connections import BoundedConnection
from .events import EventHub
from .policy import ServerPolicy, policy_for
from .requests import Studio
from .security import token_of_environment, token_of_project

_GRACE_SECONDS = 8


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to run the server."""

    host: str = "127.0.0.1"
    port: int = 3000
    web: bool = True
    processor: bool = True


class Server(uvicorn.Server):
    """Lets listeners go before it waits for requests to end: streams never end by themselves."""

    def __init__(self, config: uvicorn.Config, studio: Studio) -> None:
        super().__init__(config)
        self._studio = studio

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are the command's: what is open behind the server must still be closed."""
        yield

    def ask_to_stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._studio.processing.ask_to_stop()
        await self._studio.hub.close()
        await super().shutdown(sockets)


@asynccontextmanager
async def open_studio(
    config_path: Path | None, policy: ServerPolicy, *, processor: bool
) -> AsyncGenerator[Studio]:
    """The project behind a server. In token mode agents must have public addresses."""
    check = public_only(_config(config_path)[0].allowed_addresses) if policy.token_mode else None
    async with (
        open_workspace(config_path, address_check=check, tolerant=True) as workspace,
        retaining(workspace),
    ):
        # What cannot be set up is said at the start, not by the first run.
        _ = workspace.telemetry
        processing = ProcessorTask(workspace, enabled=processor)
        delivery = AlarmDeliveryTask(workspace)
        studio = Studio(workspace, policy, EventHub(workspace.store), processing, delivery)
        if workspace.config.production.enabled:
            studio.receiver = Receiver(workspace)
            studio.intake = IntakeTask(workspace, MonitorReviews())
        yield studio


def _config(config_path: Path | None) -> tuple[ProjectConfig, Path]:
    path = config_path or find_config(Path.cwd())
    return (read_config(path), path.resolve().parent) if path else (ProjectConfig(), Path.cwd())


def settle_policy(config_path: Path | None, host: str, tell: Callable[[str], None]) -> ServerPolicy:
    """The policy for a bind address; where a token is needed and none is set, one is made and printed."""
    config, folder = _config(config_path)
    token = token_of_environment()
    if token is None and not is_local(host):
        token, fresh = token_of_project(folder)
        tell(f"Token: {token}" if fresh else f"The token is kept in {folder / 'data' / 'server.token'}")
    return policy_for(host, token, config.allowed_hosts, config.trusted_proxies)


async def serve(config_path: Path | None, options: ServerOptions, tell: Callable[[str], None]) -> None:
    """Serve until a signal stops it."""
    policy = settle_policy(config_path, options.host, tell)
    async with open_studio(config_path, policy, processor=options.processor) as studio:
        server = make_server(studio, options)
        for problem in studio.workspace.plugin_problems.values():
            tell(f"{problem}\nNo runs are worked on until this is mended and the server started again.")
        if studio.receiver is not None and (problem := missing_extra()) is not None:
            tell(f"{problem}\nUntil then only OTLP in JSON is taken.")
        with stop_on_signals(server.ask_to_stop):
            tell(f"EvalStudio is at http://{_browsable(options.host)}:{options.port}  (Ctrl-C stops it)")
            try:
                await server.serve()
            except asyncio.CancelledError:
                # The second signal; how its tasks were cut short is no error.
                logging.getLogger("uvicorn.error").disabled = True
                raise


def make_server(studio: Studio, options: ServerOptions) -> Server:
    config = uvicorn.Config(
        create_app(studio, web=options.web),
        host=options.host,
        port=options.port,
        http=BoundedConnection,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        # Whom the request comes from and whether by TLS is believed only from the proxies that were declared.
        proxy_headers=bool(studio.policy.trusted_proxies),
        forwarded_allow_ips=list(studio.policy.trusted_proxies),
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=30,
        lifespan="on",
    )
    return Server(config, studio)


def _browsable(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
