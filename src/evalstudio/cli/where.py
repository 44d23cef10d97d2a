"""Where a command does its work: in its own process, or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..base.lazy_dataclass import dataclass
from .output import fail

if TYPE_CHECKING:
    from ..project.config import ExecutionSettings
    from ..scoring.budget_watch import UsedUp
    from ..scoring.job import Progress, ScoringJob
    from ..scoring.plan import ScoringPlan
    from ..scoring.stored_results import ResultsPlace
    from ..scoring.summary import DatasetSummary
    from .project import LocalProject

_MOST_PROCESSES = 64


def cluster_of(on: str | None, configured: ExecutionSettings) -> ExecutionSettings | None:
    """The settings of the cluster, where ``--on``, or else the config file, asks for one."""
    from ..project.config import ExecutionSettings

    if on not in (None, "local", "ray"):
        raise fail(f'--on is "local" or "ray", not "{on}"')
    if (on or configured.type) == "local":
        return None
    return configured if configured.type == "ray" else ExecutionSettings(type="ray")


def cluster_of_config(on: str | None, config: Path | None) -> ExecutionSettings | None:
    from ..project.config import ExecutionSettings, read_config

    return cluster_of(on, ExecutionSettings() if config is None else read_config(config).execution)


def project_cluster(project: LocalProject, on: str | None) -> ExecutionSettings | None:
    """The cluster on which a project's work is done, if it is."""
    cluster = cluster_of(on, project.workspace.config.execution)
    if cluster is not None and not project.config_path.is_file():
        raise fail('--on ray needs a project, which workers open too; make one with "evalstudio init"')
    if cluster is not None and project.workspace.cassette is not None:
        raise fail("--record and --replay are for one process; use --on local with them")
    return cluster


@dataclass(frozen=True, slots=True)
class ScoringPlace:
    """Where records are scored: here, or by so many workers on a cluster."""

    cluster: ExecutionSettings | None
    workers: int | None

    def score(
        self, job: ScoringJob, progress: Progress, used_up: UsedUp | None
    ) -> tuple[DatasetSummary, ScoringPlan]:
        if self.cluster is not None:
            from ..cluster.scoring import score_on_ray

            return score_on_ray(job, self.cluster, self.workers, progress, used_up)
        if job.output_address is not None:
            from ..scoring.shards_here import score_shards_here

            return score_shards_here(job, progress, used_up)
        from ..scoring.job import score_dataset

        return score_dataset(job, progress, used_up)


def dataset_address(dataset: str) -> str | None:
    from ..scoring.addresses import is_address

    return dataset if is_address(dataset) else None


def named_results(name: str) -> ResultsPlace | None:
    """Where results of ``score`` are, if that is what is named."""
    if "://" not in name and not Path(name).is_file():
        return None
    from ..scoring.stored_results import results_place

    return results_place(name)


def results_address(output: str | None) -> str | None:
    """Where the results are kept in shards, if that is no path."""
    from ..base.addresses import shown_address
    from ..scoring.addresses import is_address

    if output is None or not is_address(output):
        return None
    if not output.partition("?")[0].endswith("/"):
        advice = "end it with /, or name a path for one file"
        raise fail(
            f"--output {shown_address(output)}: at an address results are a folder of shards; {advice}"
        )
    return output


def processes(workers: int | None, cluster: ExecutionSettings | None) -> int | None:
    if workers is not None and workers > _MOST_PROCESSES and cluster is None:
        raise fail(f"--workers may be {_MOST_PROCESSES} at most on one machine; more are for --on ray")
    return workers
