"""``evalstudio score``: score a dataset of recorded responses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.signals import end_process_on_signals, interrupt_on_signals
from ..base.text import counted, percent, percents, were
from .exit_codes import STOPPED, code_of
from .options import (
    JsonOption,
    MaxCostOption,
    MaxTimeOption,
    MaxTokensOption,
    OnOption,
    ReportOption,
    RequireOption,
)
from .output import fail, open_console, plain, print_json, print_table, say, warn
from .project import run_async
from .where import ScoringPlace, cluster_of_config, dataset_address, processes, results_address

if TYPE_CHECKING:
    from ..project.requirements import Budget, Requirement
    from ..reporting.intervals import Interval
    from ..reporting.requirements import RequirementResult, Standing
    from ..scoring.job import ScoringJob
    from ..scoring.plan import ScoringPlan
    from ..scoring.summary import DatasetSummary
    from .report_files import ReportTarget

_MOST_SHOWN = 10
_BARS = " ▁▂▃▄▅▆▇█"


DatasetArgument = Annotated[
    str,
    typer.Argument(help="A .jsonl, .csv, .tsv or .parquet file of records; also an address such as s3://…"),
]
PlanOption = Annotated[Path, typer.Option("--plan", "-c", help="The scoring plan: criteria and evaluators.")]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Write one result per line here; or into shards, in a folder at an address: s3://…/.",
        show_default=False,
    ),
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Score at most this many records.")]
SampleOption = Annotated[str, typer.Option(help="Share of the records to score: 5% or 0.05.")]
SeedOption = Annotated[str, typer.Option(help="Another seed draws another sample.")]
EvaluatorsOption = Annotated[
    list[str] | None,
    typer.Option(help="Run only evaluators of this type, kind or cost (fast, embedding, llm)."),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on where a stopped run left off.")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Count unreadable records and go on.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10_000,
        help="Processes to score with: 1; as many as there are CPUs for a large file that asks no model, "
        "and with --on ray.",
    ),
]
FailUnderOption = Annotated[
    float | None, typer.Option(min=0, max=1, help="Exit with 1 if the overall score is lower.")
]
GroupByOption = Annotated[
    str | None, typer.Option(help="Summarise by agentId, sessionId or a field of the metadata.")
]
RetryErrorsOption = Annotated[
    bool, typer.Option("--retry-errors", help="With --resume: score again what errored, and only that.")
]
PluginsOption = Annotated[
    Path | None, typer.Option("--config", help="The project's config file, for its plugins.")
]


def score(
    dataset: DatasetArgument,
    plan: PlanOption,
    output: OutputOption = None,
    limit: LimitOption = None,
    sample: SampleOption = "100%",
    seed: SeedOption = "0",
    only: EvaluatorsOption = None,
    resume: ResumeOption = False,
    skip_bad: SkipBadOption = False,
    workers: WorkersOption = None,
    on: OnOption = None,
    fail_under: FailUnderOption = None,
    require: RequireOption = None,
    group_by: GroupByOption = None,
    retry_errors: RetryErrorsOption = False,
    max_cost: MaxCostOption = None,
    max_tokens: MaxTokensOption = None,
    max_time: MaxTimeOption = None,
    report: ReportOption = None,
    config: PluginsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score recorded responses with the criteria and evaluators of a plan."""
    from ..project.config import find_config, read_config
    from ..project.requirements import read_budget, read_requirements
    from ..scoring.job import ScoringJob
    from .report_files import in_github, report_targets

    requirements, budget = read_requirements(require or ()), read_budget(max_cost, max_tokens, max_time)
    targets = report_targets(report or (), as_json=as_json)
    kept_at = results_address(output)
    if targets and output is None:
        raise fail("--report needs --output: reports are made from what is written there")
    config_path = config or find_config(plan.resolve().parent)
    cluster = cluster_of_config(on, config_path)
    job = ScoringJob(
        dataset=Path(dataset),
        address=dataset_address(dataset),
        plan_path=plan,
        output=Path(output) if output is not None and kept_at is None else None,
        output_address=kept_at,
        only=only or [],
        limit=limit,
        share=_share(sample),
        seed=seed,
        skip_bad=skip_bad,
        resume=resume,
        workers=processes(workers, cluster),
        config_path=config_path,
        llm_settings=read_config(config_path).llm_settings if config_path else None,
        group_by=group_by,
        retry_errors=retry_errors,
    )
    summary, used = _scored(job, ScoringPlace(cluster, workers), budget, quiet=as_json)
    standing = _conclude(
        job, summary, used, requirements, budget, fail_under, [*targets, *in_github()], as_json
    )
    if code := code_of(standing):
        raise typer.Exit(code)


def _scored(
    job: ScoringJob, place: ScoringPlace, budget: Budget | None, *, quiet: bool
) -> tuple[DatasetSummary, ScoringPlan]:
    """Score the dataset; what ends it early is told with how to go on."""
    from asyncio import CancelledError

    from ..scoring.datasets import BadRecord

    if job.retry_errors and not job.resume:
        raise fail("--retry-errors goes with --resume: it scores again what errored in that file")
    if job.resume and job.output is None and job.output_address is None:
        raise fail("--resume needs --output: that file says where to go on")
    try:
        with interrupt_on_signals():
            return _run(job, place, budget, quiet=quiet)
    except BadRecord as error:
        raise fail(f"{error}. Mend it, or use --skip-bad to count such records and go on.") from None
    except OSError as error:
        raise fail(f"{error.filename or job.output}: {error.strerror or error}. {_whole(job)}") from None
    except (KeyboardInterrupt, CancelledError):
        # A second Ctrl-C that comes while the first is heeded leaves the event loop as a cancellation.
        end_process_on_signals()
        warn(f"Stopped. {_whole(job)}")
        raise typer.Exit(STOPPED) from None


def _conclude(
    job: ScoringJob,
    summary: DatasetSummary,
    plan: ScoringPlan,
    requirements: Sequence[Requirement],
    budget: Budget | None,
    fail_under: float | None,
    targets: Sequence[ReportTarget],
    as_json: bool,
) -> Standing:
    """Hold the results against what is required, print them and write their reports."""
    from ..reporting.recorded import RecordedEvidence, budget_notes, dataset_standing
    from ..reporting.reports.recorded import RecordedSource, recorded_head
    from ..reporting.requirements import judge
    from ..scoring.addresses import Address
    from .report_files import write_all

    notes = budget_notes(budget, summary) if budget else []
    if summary.bad == summary.read:
        _print(summary, plan, [], notes, as_json=as_json)
        raise fail(f"{job.dataset_name}: not one of its {summary.bad:,} records could be read")
    place = Address(job.output_address) if job.output_address is not None else job.output
    results = judge(requirements, RecordedEvidence(summary, place))
    _print(summary, plan, results, notes, as_json=as_json)
    standing, remarks = dataset_standing(summary, plan, fail_under, results)
    for remark in remarks:
        warn(remark)
    if summary.ended:
        # What was not scored could change every mean and every rate.
        warn(f"Not decided: not all records were scored. {_whole(job)}")
        standing = "undecided"
    if place is not None and targets:
        source = RecordedSource(place, recorded_head(place, summary, results, standing, notes))
        run_async(write_all(source, targets))
    return standing


def _print(
    summary: DatasetSummary,
    plan: ScoringPlan,
    results: Sequence[RequirementResult],
    notes: Sequence[str],
    *,
    as_json: bool,
) -> None:
    from ..reporting.recorded import summary_json
    from .run_display import print_requirements

    if as_json:
        required = [plain(one) for one in results]
        print_json({**summary_json(summary), "requirements": required, "notes": [*notes]})
    else:
        _print_summary(summary, plan)
        print_requirements(results, notes)


def _whole(job: ScoringJob) -> str:
    from ..base.addresses import shown_address

    output = shown_address(job.output_address) if job.output_address else job.output
    if output is None:
        return "Nothing was kept: with --output results are written as they come."
    return f"What is in {output} is whole: run the same command with --resume to go on."


def _share(text: str) -> float:
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        raise fail(f'--sample "{text}" is not a share; write 5% or 0.05') from None
    if not 0 < share <= 1:
        raise fail(f"--sample {text} must be more than nothing and at most 100%")
    return share


def _run(
    job: ScoringJob, place: ScoringPlace, budget: Budget | None, *, quiet: bool
) -> tuple[DatasetSummary, ScoringPlan]:
    from time import monotonic

    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from ..reporting.spending import exceeded

    begun = monotonic()

    def used_up(tokens: int, cost: float) -> str | None:
        return exceeded(budget, tokens, cost, monotonic() - begun) if budget else None

    console = open_console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(summary: DatasetSummary, share: float) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f", {(summary.records - summary.resumed) / elapsed:,.0f}/s" if elapsed > 0.5 else ""
            bar.update(task, completed=share, description=f"{summary.records:,} records{rate}")

        return place.score(job, show, used_up if budget else None)


def _print_summary(summary: DatasetSummary, plan: ScoringPlan) -> None:
    from ..reporting.recorded import mean_of, spending_of_records
    from ..reporting.spending import spending_lines

    rows = [_row(name, summary) for name in [c.name for c in plan.criteria]]
    if rows:
        columns = ("Criterion", "Mean", "n", "Coverage", "Errors", "95% interval", "0 … 1")
        print_table("Criteria", columns, rows)
    _print_evaluators(summary)
    _print_groups(summary)
    overall = "no overall score"
    if summary.overall.mean is not None:
        overall = f"overall {summary.overall.mean:.3f}"
    outcomes = {name: n for name, n in summary.outcomes.items() if n or name != "unasserted"}
    counts = ", ".join(f"{count:,} {name}" for name, count in outcomes.items())
    say(f"{counted(summary.records, 'record')}: {overall} ({counts})")
    if summary.overall.count:
        say(f"95% interval of the overall score: {_ends(mean_of(summary.overall))}")
    for line in spending_lines(spending_of_records(summary), "records"):
        say(line)
    if summary.resumed:
        say(f"{summary.resumed:,} of them were scored before this run")
    if summary.unsampled:
        say(f"{counted(summary.unsampled, 'record')} {were(summary.unsampled)} not in the sample")
    if summary.bad:
        say(f"{counted(summary.bad, 'unreadable record')} {were(summary.bad)} left out:")
        for line, reason in summary.left_out[:_MOST_SHOWN]:
            say(f"  line {line}: {reason}")
        if summary.bad > _MOST_SHOWN:
            say(f"  and {summary.bad - _MOST_SHOWN:,} more; --json lists up to 100")
    if summary.retried:
        say(f"{counted(summary.retried, 'record')} that had errored {were(summary.retried)} scored again")
    if summary.duplicates.count:
        examples = ", ".join(summary.duplicates.examples)
        say(f"{counted(summary.duplicates.count, 'record')} with the id of an earlier one: {examples}")
    if summary.retries:
        say(f"models were asked again {counted(summary.retries, 'time')}")
    for message, count in sorted(summary.errors.items(), key=lambda item: -item[1])[:5]:
        say(f"  {count:,} × {message}")


def _print_evaluators(summary: DatasetSummary) -> None:
    """Assertions by what they came to, metrics by what they measured."""
    from ..scoring.summary import ASSERTION_OUTCOMES, METRIC_OUTCOMES

    tables: dict[str, list[tuple[str, ...]]] = {"assertion": [], "metric": []}
    for name, tally in summary.evaluators.items():
        words = ASSERTION_OUTCOMES if tally.kind == "assertion" else METRIC_OUTCOMES
        digits = ".3f" if tally.kind == "assertion" else ".4g"
        mean = "-" if tally.mean is None else f"{tally.mean:{digits}}"
        tables[tally.kind].append((name, *(f"{tally.of(word):,}" for word in words), mean))
    if rows := tables["assertion"]:
        print_table("Evaluators", ("Evaluator", "Pass", "Fail", "Error", "Skipped", "Mean"), rows)
    if rows := tables["metric"]:
        print_table("Metrics", ("Metric", "n", "Missing", "Error", "Mean"), rows)


def _row(name: str, summary: DatasetSummary) -> tuple[str, ...]:
    spread = summary.criteria.get(name)
    errors = f"{summary.criterion_errors.get(name, 0):,}"
    if spread is None or spread.mean is None:
        return name, "-", "0", "0%", errors, "-", ""
    from ..reporting.recorded import mean_of

    coverage, ends = percent(spread.count / summary.records), _ends(mean_of(spread))
    return name, f"{spread.mean:.3f}", f"{spread.count:,}", coverage, errors, ends, _histogram(spread.bins)


def _ends(interval: Interval) -> str:
    return f"{interval.low:.3f}–{interval.high:.3f}"


def _print_groups(summary: DatasetSummary) -> None:
    from ..reporting.recorded import mean_of, pass_rate

    rows: list[tuple[str, ...]] = []
    for name, group in sorted(summary.groups.items()):
        rate, mean = pass_rate(group.outcomes), group.overall.mean
        shown = (
            "-" if rate.estimate is None else f"{percent(rate.estimate)} ({percents(rate.low, rate.high)})"
        )
        score = "-" if mean is None else f"{mean:.3f} ({_ends(mean_of(group.overall))})"
        rows.append((name, f"{group.records:,}", shown, f"{group.outcomes['error']:,}", score))
    if rows:
        print_table("Groups", ("Group", "n", "Pass rate (95%)", "Errors", "Overall (95%)"), rows)


def _histogram(bins: list[int]) -> str:
    highest = max(bins)
    return "".join(_BARS[0 if not count else max(1, round(count / highest * 8))] for count in bins)
