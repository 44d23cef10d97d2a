"""``evalstudio serve`` and ``worker``: the server, and processes that work off its queue."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from .options import ConcurrencyOption, ConfigOption
from .output import PlainFormatter, fail, warn
from .project import config_path, confirm, local_project_at, run_async


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen at; any but a local one needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen at.")] = 3000,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve the web UI.")] = True,
    processor: Annotated[
        bool, typer.Option("--processor/--no-processor", help="Work on queued runs in this process.")
    ] = True,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the web UI in a browser.")] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Make a project in this folder, unless there is one.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Serve the API and the web UI. Ctrl-C finishes what is nearly done and releases the rest."""
    from ..server.policy import UnsafeServer
    from ..server.serving import ServerOptions
    from ..server.serving import serve as run_server

    path = config or _project_here(make=init)
    _log_to_stderr()
    options = ServerOptions(host=host, port=port, web=web, processor=processor)
    try:
        if open_browser:
            _open_soon(f"http://{host}:{port}/")
        run_async(run_server(path, options, warn))
    except UnsafeServer as error:
        raise fail(str(error)) from None


def _project_here(*, make: bool) -> Path:
    """The config file of the nearest project; where there is none, one is made if that is wanted."""
    from ..project.config import find_config
    from .new_project import make_project

    if path := find_config(Path.cwd()):
        return path
    missing = "There is no evalstudio.config.json here or in a folder above."
    confirm(f"{missing} Make a project in {Path.cwd()}?", yes=make, option='--init, or run "evalstudio init"')
    make_project(Path())
    warn(f"Made a project in {Path.cwd()}")
    return config_path(None)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("evalstudio")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _open_soon(address: str) -> None:
    """Once the server listens; a browser that is too early shows an error."""
    import threading
    import webbrowser

    timer = threading.Timer(1.0, webbrowser.open, (address,))
    timer.daemon = True
    timer.start()


def worker(
    concurrency: ConcurrencyOption = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="Stop when nothing is queued or running any more.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Work on queued runs until stopped. Ctrl-C finishes what is nearly done and releases the rest."""

    async def work() -> None:
        import asyncio

        from ..base.signals import stop_on_signals
        from ..execution.processor import Processor
        from ..execution.retention import retaining
        from ..storage.contract import Filters

        async with local_project_at(config) as project, retaining(project.workspace):
            # Before the first run is claimed: a plugin that cannot be loaded is no fault of a run.
            _ = project.workspace.registry
            processor = Processor(project.workspace, concurrency=concurrency)
            stop = asyncio.Event()

            async def nothing_left() -> bool:
                filters = (Filters(status="queued"), Filters(status="running"))
                return not any([(await project.records.runs(one, limit=1)).items for one in filters])

            warn(f"worker {processor.worker_id} is ready; Ctrl-C stops it")
            with stop_on_signals(stop.set):
                await processor.run(stop=stop, until=nothing_left if until_done else None)
            warn("worker stopped")

    run_async(work())
