"""``evalstudio worker``: work on the queued runs of a shared project, from any number of machines."""

from __future__ import annotations

from typing import Annotated

import typer

from .loops import run_async
from .opening import config_at_hand
from .options import ConfigOption
from .output import warn


def worker(
    concurrency: Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")] = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="Stop when nothing is queued or running any more.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Work on queued runs until stopped. Ctrl-C finishes what is nearly done and releases the rest."""

    async def work() -> None:
        import asyncio

        from ..execution.processor import Processor
        from ..execution.session import stop_on_signals
        from ..execution.workspace import open_workspace
        from ..storage.contract import Filters

        async with open_workspace(config_at_hand(config)) as workspace:
            processor = Processor(workspace, concurrency=concurrency)
            stop = asyncio.Event()

            async def nothing_left() -> bool:
                waiting = [
                    await workspace.store.runs(Filters(status=s), limit=1) for s in ("queued", "running")
                ]
                return not any(page.items for page in waiting)

            warn(f"worker {processor.worker_id} is ready; Ctrl-C stops it")
            with stop_on_signals(stop):
                await processor.run(stop=stop, until=nothing_left if until_done else None)
            warn("worker stopped")

    run_async(work())
