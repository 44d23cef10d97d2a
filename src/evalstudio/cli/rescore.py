"""``evalstudio rescore``: stored conversations under the evaluators of today, beside what they came to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..base.lazy_dataclass import dataclass
from ..base.signals import stop_on_signals
from .exit_codes import STOPPED
from .options import ConcurrencyOption, ConfigOption, JsonOption, ReportOption, RequireOption, ServerOption
from .output import fail, plain, say, warn
from .project import LocalProject, Project, RemoteProject, open_registry, project_at, run_async

if TYPE_CHECKING:
    from ..client import AsyncClient
    from ..project.entities import Execution
    from ..project.requirements import Requirement


def rescore(
    target: Annotated[
        str, typer.Argument(metavar="EXECUTION|RUN", help="The id of an execution or a run, or: last.")
    ],
    evaluators: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Evaluators and criteria in the place of each scenario's own."),
    ] = None,
    scenario: Annotated[
        str | None, typer.Option(metavar="NAME", help="Score all of them by this scenario.")
    ] = None,
    ask_again: Annotated[
        bool, typer.Option("--ask-again", help="Ask models also where nothing has changed for them.")
    ] = False,
    concurrency: ConcurrencyOption = None,
    label: Annotated[list[str] | None, typer.Option(help="key=value kept with the execution.")] = None,
    require: RequireOption = None,
    report: ReportOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
) -> None:
    """Score stored conversations again, and show what changed. Exit codes are those of eval run.

    No agent is called. A model is asked only where its evaluator, its prompts or what it looks at changed.
    """
    from ..project.requirements import read_requirements
    from .report_files import in_github, report_targets

    requirements = read_requirements(require or ())
    labels = {key: value for key, _, value in (one.partition("=") for one in label or ())}
    targets = [*report_targets(report or (), as_json=as_json), *in_github()]

    if server is not None and concurrency is not None:
        raise fail("--concurrency is the server's own with --server")
    wish = _Wish(evaluators, scenario, ask_again, labels, requirements, concurrency)

    async def work() -> int:
        from .eval_run import conclude_and_print
        from .runs import execution_id

        stop = asyncio.Event()
        with stop_on_signals(stop.set):
            async with project_at(config, server) as project:
                named = await execution_id(project.records, target) if target == "last" else target
                if isinstance(project, RemoteProject):
                    original, done = await _rescore_there(project, named, wish, stop)
                else:
                    original, done = await _rescore_here(cast(LocalProject, project), named, wish, stop)
                code = await conclude_and_print(project, done, as_json=as_json, reports=targets)
                if not as_json:
                    await _print_flips(project, original, done)
                if done.is_unfinished:
                    warn(_stopped(server))
                    return STOPPED
                return code

    if code := run_async(work()):
        raise typer.Exit(code)


def _stopped(server: str | None) -> str:
    if server is not None:
        return "Stopped looking; the server goes on."
    return "Stopped; what was scored until then is kept, marked as unfinished."


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the options say."""

    evaluators: Path | None
    scenario: str | None
    ask_again: bool
    labels: dict[str, str]
    requirements: Sequence[Requirement]
    concurrency: int | None


async def _rescore_here(
    project: LocalProject, target: str, wish: _Wish, stop: asyncio.Event
) -> tuple[Execution, Execution]:
    """The execution of then, and the one of its conversations scored again."""
    from ..execution.rescores import begin_rescore, rescore_execution, rescore_request
    from ..execution.rescoring import Measure, named_scenario
    from ..execution.review_request import request_by_plan

    workspace = project.workspace
    plan = None
    if wish.evaluators is not None:
        plan = request_by_plan(workspace.registry, wish.evaluators).scenarios[0]
    chosen = None if wish.scenario is None else await named_scenario(workspace, wish.scenario)
    request = await rescore_request(workspace, target, Measure(chosen, plan, wish.ask_again))
    required = [*request.requirements, *wish.requirements]
    request = replace(request, labels=wish.labels, requirements=required)
    execution = await begin_rescore(workspace, request)
    done = await rescore_execution(workspace, request, execution, concurrency=wish.concurrency, stop=stop)
    return request.original, done


async def _rescore_there(
    project: RemoteProject, target: str, wish: _Wish, stop: asyncio.Event
) -> tuple[Execution, Execution]:
    """The same by a server, which is watched."""
    from uuid import uuid4

    from ..execution.labels import automatic_labels
    from ..execution.review_request import request_by_plan
    from .eval_run import watch_there
    from .reviewers import evaluators_of, scenario_id

    client = project.client
    execution, run = await _target_there(client, target)
    body: dict[str, Any] = {"runId": run, "askAgain": wish.ask_again, "trigger": "cli"}
    if wish.scenario is not None:
        body["scenarioId"] = await scenario_id(project, wish.scenario)
    if wish.evaluators is not None:
        by_plan = evaluators_of(request_by_plan(open_registry(None), wish.evaluators))
        body |= {name: by_plan[name] for name in ("evaluators", "criteria") if name in by_plan}
    body["labels"] = {**automatic_labels(Path.cwd()), **wish.labels}
    body["requirements"] = [plain(one) for one in wish.requirements]
    started = await client.rescore(execution, key=uuid4().hex, **body)
    done = await watch_there(project.records, started.id, stop)
    return await client.execution(execution), done


async def _target_there(client: AsyncClient, target: str) -> tuple[str, str | None]:
    """The execution, and the run if it is only one of its runs."""
    from ..client import ServerError

    try:
        return (await client.execution(target)).id, None
    except ServerError as error:
        if error.status != 404:
            raise
    run = await client.run(target)
    return run.execution_id, run.id


async def _print_flips(project: Project, original: Execution, done: Execution) -> None:
    from ..execution.comparing import ComparisonRequest
    from .compare import print_comparison

    say("")
    print_comparison(await project.compare(ComparisonRequest(original.id, done.id)))
