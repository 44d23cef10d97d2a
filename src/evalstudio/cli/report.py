"""``evalstudio report``: an execution or a results file as a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AgentErrorsOption, ConfigOption, ServerOption, read_agent_errors
from .output import say
from .project import project_at, run_async
from .report_files import FORMATS, report_targets, write_all
from .runs import execution_id
from .where import named_results


def report(
    target: Annotated[
        str,
        typer.Argument(
            help="An execution's id, last, or a results file of score; also an address such as s3://…/."
        ),
    ],
    form: Annotated[str, typer.Option("--format", "-f", help=f"One of {FORMATS}.")] = "terminal",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it here, not to stdout.", show_default=False)
    ] = None,
    agent_errors: AgentErrorsOption = None,
    config: ConfigOption = None,
    server: ServerOption = None,
) -> None:
    """Write what an execution or a results file came to: for people, pull requests or CI systems."""
    counted_as = read_agent_errors(agent_errors)
    [chosen] = report_targets([f"{form}={output or '-'}"])

    results = named_results(target)

    async def work() -> None:
        if results is not None:
            from ..reporting.reports.recorded import recorded_source

            await write_all(recorded_source(results), [chosen])
            return
        async with project_at(config, server) as project:
            from ..execution.conclusion import conclude

            records = project.records
            execution = await records.execution(await execution_id(records, target))
            done = await conclude(records, execution.counting(counted_as), detailed=True)
            await write_all(done.source, [chosen])

    run_async(work())
    if output is not None:
        say(f"Written to {output}.")
