"""``evalstudio rescore``: stored conversations under the evaluators of today, beside what they came to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.signals import stop_on_signals
from .exit_codes import STOPPED
from .options import ConcurrencyOption, ConfigOption, JsonOption, ReportOption, RequireOption
from .output import say, warn
from .project import LocalProject, local_project_at, run_async

if TYPE_CHECKING:
    from ..execution.rescoring import Measure
    from ..project.entities import Execution


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
) -> None:
    """Score stored conversations again, and show what changed. Exit codes are those of eval run.

    No agent is called. A model is asked only where its evaluator, its prompts or what it looks at changed.
    """
    from ..project.requirements import read_requirements
    from .report_files import in_github, report_targets

    requirements = read_requirements(require or ())
    labels = {key: value for key, _, value in (one.partition("=") for one in label or ())}
    targets = [*report_targets(report or (), as_json=as_json), *in_github()]

    async def work() -> int:
        from ..execution.rescores import begin_rescore, rescore_execution, rescore_request
        from .eval_run import conclude_and_print
        from .runs import execution_id

        stop = asyncio.Event()
        with stop_on_signals(stop.set):
            async with local_project_at(config) as project:
                workspace = project.workspace
                named = await execution_id(workspace.store, target) if target == "last" else target
                measure = await _measure(project, evaluators, scenario, ask_again=ask_again)
                request = await rescore_request(workspace, named, measure)
                request = replace(request, labels=labels, requirements=[*request.requirements, *requirements])
                execution = await begin_rescore(workspace, request)
                done = await rescore_execution(
                    workspace, request, execution, concurrency=concurrency, stop=stop
                )
                code = await conclude_and_print(project, done, as_json=as_json, reports=targets)
                if not as_json:
                    await _print_flips(project, request.original, done)
                if done.is_unfinished:
                    warn("Stopped; what was scored until then is kept, marked as unfinished.")
                    return STOPPED
                return code

    if code := run_async(work()):
        raise typer.Exit(code)


async def _measure(
    project: LocalProject, evaluators: Path | None, scenario: str | None, *, ask_again: bool
) -> Measure:
    from ..execution.rescoring import Measure, named_scenario
    from ..execution.review_request import request_by_plan

    workspace = project.workspace
    plan = None if evaluators is None else request_by_plan(workspace, evaluators).scenarios[0]
    chosen = None if scenario is None else await named_scenario(workspace, scenario)
    return Measure(chosen, plan, ask_again)


async def _print_flips(project: LocalProject, original: Execution, done: Execution) -> None:
    from ..execution.comparing import compare_executions
    from .compare import print_comparison

    say("")
    print_comparison(await compare_executions(project.workspace.store, original, done))
