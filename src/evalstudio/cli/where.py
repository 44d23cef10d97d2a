"""Where a command does its work: in its own process, or on a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .output import fail

if TYPE_CHECKING:
    from ..project.config import ExecutionSettings
    from ..scoring.job import Progress, ScoringJob
    from ..scoring.plan import ScoringPlan
    from ..scoring.summary import DatasetSummary

_MOST_PROCESSES = 64


def execution_settings(on: str | None, config: Path | None) -> ExecutionSettings:
    """What ``--on`` says, else the config file; the address of a cluster is that of the config file."""
    from ..project.config import ExecutionSettings, read_config

    if on not in (None, "local", "ray"):
        raise fail(f'--on is "local" or "ray", not "{on}"')
    configured = ExecutionSettings() if config is None else read_config(config).execution
    if on is None or on == configured.type:
        return configured
    return ExecutionSettings(type=on)


def is_on_ray(on: str | None, config: Path | None) -> ExecutionSettings | None:
    """The settings of the cluster, where there is to be one."""
    settings = execution_settings(on, config)
    return settings if settings.type == "ray" else None


@dataclass(frozen=True, slots=True)
class ScoringPlace:
    """Where records are scored: here, or by so many workers on a cluster."""

    cluster: ExecutionSettings | None
    workers: int | None

    def score(self, job: ScoringJob, progress: Progress) -> tuple[DatasetSummary, ScoringPlan]:
        if self.cluster is not None:
            from ..cluster.scoring import score_on_ray

            return score_on_ray(job, self.cluster, self.workers, progress)
        from ..scoring.job import score_dataset

        return score_dataset(job, progress)


def dataset_address(dataset: str, cluster: ExecutionSettings | None) -> str | None:
    from ..scoring.dataset_files import is_address

    if not is_address(dataset):
        return None
    if cluster is None:
        raise fail(f"{dataset} is an address, which is read with --on ray; without it, name a file")
    return dataset


def processes(workers: int | None, cluster: ExecutionSettings | None) -> int:
    if workers is not None and workers > _MOST_PROCESSES and cluster is None:
        raise fail(f"--workers may be {_MOST_PROCESSES} at most on one machine; more are for --on ray")
    return workers or 1
