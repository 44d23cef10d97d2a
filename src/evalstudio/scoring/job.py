"""A scoring job: what was asked for, and everything one process needs to do its part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..configs import InvalidConfig
from ..evaluators.contract import Embedder
from ..evaluators.definition import Entry
from ..files import ConfigError
from ..llm.batching import BatchingEmbedder
from ..llm.client import Llm
from ..llm.embeddings import LocalEmbedder
from ..plugins import PluginRegistry, create_registry, load_named, load_plugins
from .plan import ScoringPlan, load_plan
from .rows import RowReader
from .runner import EvaluationRunner
from .scorer import Choice, Scorer

_OURS = "evalstudio."


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """One press of the button on a dataset."""

    dataset: Path
    plan_path: Path
    output: Path | None = None
    only: list[str] = field(default_factory=list[str])
    limit: int | None = None
    share: float = 1.0
    seed: str = "0"
    skip_bad: bool = False
    resume: bool = False
    workers: int = 1
    config_path: Path | None = None

    def choice(self) -> Choice:
        return Choice(str(self.dataset), self.share, self.seed, self.skip_bad)


@dataclass(slots=True)
class Bench:
    """Everything one process needs to score chunks of a job."""

    plan: ScoringPlan
    scorer: Scorer
    runner: EvaluationRunner
    llm: Llm | None
    _retries_seen: int = 0

    def retries(self) -> int:
        """How often a model had to be asked again since this was last asked."""
        if self.llm is None:
            return 0
        total = sum(role.retries + role.repairs for role in self.llm.usage.values())
        new, self._retries_seen = total - self._retries_seen, total
        return new


def set_up(job: ScoringJob) -> Bench:
    """Load the plan, its plugins and its models; every mistake in them is found here."""
    plan = load_plan(job.plan_path)
    registry = _registry(plan, job)
    llm = Llm(plan.llm_settings) if plan.llm_settings else None
    embedder: Embedder = BatchingEmbedder(llm or LocalEmbedder())
    try:
        runner = EvaluationRunner(plan.run_config(job.only), registry=registry, llm=llm, embedder=embedder)
    except InvalidConfig as error:
        raise ConfigError(f"{job.plan_path}: {error}") from None
    if llm is None and (asks := next((e for e in runner.entries if _needs_model(e)), None)):
        raise ConfigError(
            f"{job.plan_path}: {asks.key} asks a language model: add llmSettings, or leave it out by --only"
        )
    reader = RowReader(plan.criteria, plan.fields, llm, embedder)
    return Bench(plan, Scorer(runner, reader, job.choice()), runner, llm)


def _needs_model(entry: Entry) -> bool:
    """Whether it is one of our own judges; a plugin's may bring a model of its own."""
    return entry.definition.cost == "llm" and entry.definition.module.startswith(_OURS)


def _registry(plan: ScoringPlan, job: ScoringJob) -> PluginRegistry:
    registry = create_registry() if job.config_path is None else load_plugins(job.config_path)
    load_named(registry, plan.plugins, job.plan_path.resolve().parent)
    return registry
