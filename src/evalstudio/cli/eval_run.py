"""``evalstudio eval run``: run an eval, show it live, and say what it came to by the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .loops import run_async
from .opening import config_at_hand
from .options import ConfigOption, JsonOption
from .output import print_json, warn

if TYPE_CHECKING:
    import asyncio

    from ..execution.starting import Order
    from ..execution.workspace import Workspace
    from ..project.entities import Execution, RunSummary, StoredEval

EXIT_FAILED, EXIT_ERRORED, EXIT_INTERRUPTED = 1, 3, 130


def eval_run(
    name: Annotated[str | None, typer.Argument(help="The eval; not needed where there is only one.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="Repetitions, instead of the eval's own.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    connector: Annotated[
        list[str] | None, typer.Option(help="Against this connector; may be repeated.")
    ] = None,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="Only what did not pass in the last execution.")
    ] = False,
    concurrency: Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")] = None,
    agent_errors: Annotated[
        str, typer.Option(help="Count an agent's errors as: error (neither pass nor failure) or fail.")
    ] = "error",
    label: Annotated[list[str] | None, typer.Option(help="key=value kept with the execution.")] = None,
    record: Annotated[Path | None, typer.Option(help="Record what models and agents answer here.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Answer from this recording; a miss fails.")] = None,
    cache: Annotated[bool, typer.Option("--cache", help="Keep model answers and use them again.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run an eval. Exit code: 0 all passed, 1 something failed, 3 nothing failed but something errored."""
    from ..execution.workspace import ModelOptions
    from ..files import ConfigError

    if agent_errors not in ("error", "fail"):
        raise ConfigError(f'--agent-errors is "error" or "fail", not "{agent_errors}"')
    if record and replay:
        raise ConfigError("--record and --replay exclude each other")
    options = ModelOptions(record=record, replay=replay, cache=cache)

    async def work() -> int:
        import asyncio

        from ..execution.session import stop_on_signals
        from ..execution.starting import start_execution
        from ..execution.workspace import open_workspace

        async with open_workspace(config_at_hand(config), options) as workspace:
            wanted = await find_eval(workspace, name)
            order = await _order(
                workspace, wanted, only or [], connector or [], repeat, last_failed, label or []
            )
            execution = await start_execution(workspace, order)
            stop = asyncio.Event()
            with stop_on_signals(stop):
                done = await _follow(workspace, execution, stop, concurrency, quiet=as_json)
            fails = agent_errors == "fail"
            return await report(
                workspace, done, agent_errors_fail=fails, as_json=as_json, stopped=stop.is_set()
            )

    code = run_async(work())
    if code:
        raise typer.Exit(code)


async def find_eval(workspace: Workspace, name: str | None) -> StoredEval:
    """The eval of this name or id; without a name, the only one."""
    from ..configs import closest
    from ..files import ConfigError
    from ..project.entities import StoredEval

    page = await workspace.store.list_of("eval", limit=500)
    evals = [item for item in page.items if isinstance(item, StoredEval)]
    names = [item.name for item in evals]
    if name is None:
        if len(evals) == 1:
            return evals[0]
        if not evals:
            raise ConfigError('there is no eval yet; define one in a file and run "evalstudio apply FILE"')
        raise ConfigError(f"there are several evals; name one: {', '.join(sorted(names))}")
    for item in evals:
        if item.id == name or item.name.casefold() == name.casefold():
            return item
    raise ConfigError(f'there is no eval called "{name}"{closest(name, names)}')


async def _order(
    workspace: Workspace,
    wanted: StoredEval,
    only: list[str],
    connectors: list[str],
    repeat: int | None,
    last_failed: bool,
    labels: list[str],
) -> Order:
    from dataclasses import replace

    from ..execution.starting import order_of
    from ..files import ConfigError

    order = await order_of(workspace, wanted, only=only, connectors=connectors, repetitions=repeat)
    pairs = {key: value for key, _, value in (label.partition("=") for label in labels)}
    subjects = await _failed_subjects(workspace, wanted) if last_failed else None
    if subjects is not None and not subjects:
        raise ConfigError(f'everything passed in the last execution of "{wanted.name}"; nothing to run again')
    return replace(order, labels=pairs, only_subjects=subjects)


async def _failed_subjects(workspace: Workspace, wanted: StoredEval) -> frozenset[Any]:
    from ..execution.session import all_runs
    from ..files import ConfigError
    from ..storage.contract import Filters

    page = await workspace.store.executions(Filters(eval_id=wanted.id), limit=1)
    if not page.items:
        raise ConfigError(f'"{wanted.name}" has not been run yet, so nothing has failed')
    return frozenset(
        [
            (run.scenario_id, run.persona_id, run.case_name, run.connector_id)
            async for run in all_runs(workspace, Filters(execution_id=page.items[0].id))
            if run.result is None or run.result.outcome != "pass"
        ]
    )


async def _follow(
    workspace: Workspace, execution: Execution, stop: asyncio.Event, concurrency: int | None, *, quiet: bool
) -> Execution:
    """Work on it with a live line of progress on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ..execution.session import work_off

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=execution.counts.total)

        def show(now: Execution) -> None:
            counts = now.counts
            done = counts.passed + counts.failed + counts.errored + counts.cancelled
            words = f"{counts.passed} passed, {counts.failed} failed, {counts.errored} errored"
            asked = " (stopping)" if stop.is_set() else ""
            bar.update(task, completed=done, description=words + asked)

        return await work_off(workspace, execution, stop=stop, concurrency=concurrency, follow=show)


async def report(
    workspace: Workspace,
    execution: Execution,
    *,
    agent_errors_fail: bool,
    as_json: bool,
    stopped: bool = False,
) -> int:
    """Print what an execution came to and say the exit code."""
    from ..execution.session import all_runs, facts_of
    from ..reporting.statistics import summarize
    from ..storage.contract import Filters

    runs = [run async for run in all_runs(workspace, Filters(execution_id=execution.id))]
    runs.reverse()
    summary = summarize((facts_of(run) for run in runs), agent_errors_fail=agent_errors_fail)
    if as_json:
        listed = [run.model_dump(mode="json", by_alias=True, exclude_none=True) for run in runs]
        shown = execution.model_dump(mode="json", by_alias=True, exclude_none=True)
        print_json({"execution": shown, "summary": summary.to_json(), "runs": listed})
    else:
        from .execution_tables import print_runs, print_summary

        print_runs(runs)
        print_summary(execution, summary)
    missed = workspace.cassette.misses if workspace.cassette is not None else []
    if missed:
        # A judge that missed may have been outvoted by a later turn; the recording is stale all the same.
        warn(f"The recording has no answer to {len(missed)} requests; record it anew. The first: {missed[0]}")
    if stopped and execution.status not in ("completed", "cancelled"):
        left = execution.counts.queued + execution.counts.running
        warn(f"Stopped with {left} runs left; they stay queued. Go on with: evalstudio worker --until-done")
        return EXIT_INTERRUPTED
    return exit_code(summary.counts) or (EXIT_ERRORED if missed else 0)


def exit_code(counts: dict[str, int]) -> Literal[0, 1, 3]:
    if counts["fail"]:
        return EXIT_FAILED
    return EXIT_ERRORED if counts["error"] or counts["cancelled"] else 0


def print_hint(runs: list[RunSummary]) -> None:
    """What to look at next."""
    failed = next((run for run in runs if run.result and run.result.outcome != "pass"), None)
    if failed is not None:
        typer.echo(f"Look closer: evalstudio run show {failed.id}")
