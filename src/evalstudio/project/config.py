"""The project's config file: finding it, reading it, and saying exactly what is wrong with it."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from ..base.files import read_mapping
from ..base.paths import texts_in
from ..base.problems import InvalidInput, Problem, problems_of
from ..base.references import names_in
from ..base.times import read_period
from ..base.trust import check_trusted
from ..configs import StrictConfig
from ..evaluators.limits import DEFAULT_LIMITS, EvaluatorLimits
from ..llm.settings import LlmSettings
from ..telemetry.opening import FLUSH_SECONDS
from .production import ProductionSettings

CONFIG_NAMES = ("evalstudio.config.json", "evalstudio.config.yaml", "evalstudio.config.yml")

Text = Annotated[str, Field(min_length=1)]


def _network(value: str) -> str:
    try:
        ip_network(value.strip(), strict=False)
    except ValueError:
        raise ValueError(f'"{value}" is not an IP address or a range such as 10.0.0.0/8') from None
    return value.strip()


Network = Annotated[str, AfterValidator(_network)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _period(text: str) -> str:
    if not read_period(text):
        raise ValueError(f'"{text}" would keep nothing; give at least 1h')
    return text


class RetentionSettings(StrictConfig):
    """What server and workers delete by themselves. Baselines, and what they rest on, always stay."""

    max_age: Annotated[str, AfterValidator(_period)] | None = Field(
        default=None, description="What ended longer ago is deleted: 90d, 12h, 8w"
    )
    max_executions: int | None = Field(
        default=None,
        ge=1,
        description="Of finished executions, only so many are kept: the newest",
    )
    keep_labels: list[Annotated[str, Field(pattern=r"^[^=]")]] = Field(
        default=[], description="Executions with one of these labels stay: key=value, or key for any value"
    )

    @model_validator(mode="after")
    def _deletes_something(self) -> RetentionSettings:
        if self.keep_labels and not self.enabled:
            raise ValueError("keepLabels needs maxAge or maxExecutions: without them everything is kept")
        return self

    @property
    def enabled(self) -> bool:
        return self.max_age is not None or self.max_executions is not None

    @property
    def age(self) -> timedelta | None:
        return None if self.max_age is None else read_period(self.max_age)


class StorageSettings(StrictConfig):
    """Where results are kept."""

    type: Literal["sqlite", "postgres"] = "sqlite"
    path: Text | None = Field(default=None, description="SQLite file, relative to the config file")
    connection_string: Text | None = Field(default=None, repr=False)
    synchronous: Literal["normal", "full"] = Field(
        default="normal",
        description="SQLite: full waits for the disk at every commit, so that a power cut loses nothing",
    )

    @model_validator(mode="after")
    def _belongs_to_its_type(self) -> StorageSettings:
        if self.type == "postgres" and self.connection_string is None:
            raise ValueError("postgres needs a connectionString")
        if self.type == "postgres" and self.path is not None:
            raise ValueError("path is for sqlite; postgres takes a connectionString")
        if self.type == "postgres" and self.synchronous != "normal":
            raise ValueError("synchronous is for sqlite; set synchronous_commit in PostgreSQL")
        if self.type == "sqlite" and self.connection_string is not None:
            raise ValueError("connectionString is for postgres; sqlite takes a path")
        return self


class TelemetrySettings(StrictConfig):
    """Whether runs are told of as OpenTelemetry's spans, events and metrics, and where to."""

    enabled: bool = Field(default=False, description="Nothing is sent unless this is true")
    endpoint: Text | None = Field(
        default=None,
        description="Address of an OTLP receiver, below which /v1/traces and the like are; "
        "OTEL_EXPORTER_OTLP_ENDPOINT goes before it",
    )
    explanations: bool = Field(default=True, description="Whether events carry the reasons of evaluators")
    flush_seconds: float = Field(
        default=FLUSH_SECONDS, ge=0, le=60, description="Longest wait at the end for what is left to be sent"
    )

    @field_validator("endpoint")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://", "${")):
            raise ValueError("it must be an address such as http://127.0.0.1:4318")
        return value


class ExecutionSettings(StrictConfig):
    """Where work is done: in the process of the command, or by workers on a Ray cluster."""

    type: Literal["local", "ray"] = "local"
    address: Text | None = Field(
        default=None,
        description="Of a Ray cluster, such as 10.0.0.5:6379; without it one is started on this machine",
    )

    @model_validator(mode="after")
    def _belongs_to_its_type(self) -> ExecutionSettings:
        if self.type == "local" and self.address is not None:
            raise ValueError("address is for ray")
        return self


class Defaults(StrictConfig):
    """What scenarios and evals use where they say nothing themselves."""

    max_messages: int | None = Field(default=None, ge=1)
    repetitions: int | None = Field(default=None, ge=1)


class ProjectConfig(StrictConfig):
    """The whole config file. Every part may be left out."""

    json_schema: str | None = Field(default=None, alias="$schema", description="For editors")
    version: Literal[2] = 2
    name: Text | None = None
    plugins: list[Text] = Field(default=[], description="Paths, modules or installed distributions")
    evaluators: list[Text] = Field(default=[], description="A synonym for plugins; both lists are joined")
    llm_settings: LlmSettings | None = None
    storage: StorageSettings = StorageSettings()
    max_concurrency: int = Field(default=8, ge=1, description="Runs at the same time")
    max_per_connector: int | None = Field(
        default=None, ge=1, description="Runs at the same time against one connector"
    )
    python_modules: list[Text] = Field(
        default=[], description="Modules whose functions a python connector may call"
    )
    allowed_hosts: list[Text] = Field(
        default=[], description="Further host names under which the server may be called"
    )
    allowed_addresses: list[Network] = Field(
        default=[], description="Private addresses agents may have although the server needs a token"
    )
    allowed_variables: list[VariableName] = Field(
        default=[],
        description="Environment variables that definitions from the API or from other folders may refer to",
    )
    trusted_proxies: list[Network] = Field(
        default=[],
        description="Addresses of the proxies in front of the server, whose word on the caller counts",
    )
    limits: EvaluatorLimits = Field(
        default=DEFAULT_LIMITS, description="How much evaluators look at, and how long they may take"
    )
    defaults: Defaults = Defaults()
    execution: ExecutionSettings = Field(
        default=ExecutionSettings(), description="Where work is done; --on of a command goes before it"
    )
    production: ProductionSettings = ProductionSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    retention: RetentionSettings = Field(
        default=RetentionSettings(),
        description="What server and workers delete by themselves; nothing unless given",
    )

    @property
    def all_plugins(self) -> list[str]:
        return self.plugins + self.evaluators


def find_config(start: Path | str = ".") -> Path | None:
    """The nearest config file, from a folder up to the root."""
    folder = Path(start).resolve()
    for place in (folder, *folder.parents):
        files = [place / name for name in CONFIG_NAMES if (place / name).is_file()]
        if len(files) > 1:
            names = " and ".join(path.name for path in files)
            raise InvalidInput(Problem(f"{place} holds {names}", hint="keep one of them"))
        if files:
            return files[0]
    return None


_NOT_SHARED = frozenset({"storage", "production"})


def shared_variables(path: Path | str) -> frozenset[str]:
    """The environment variables that definitions from elsewhere may refer to.

    They are those the config file allows and those it refers to itself, except for the database's and the
    intake's: what opens them is for no agent.
    """
    data = {key: item for key, item in read_mapping(Path(path)).data.items() if key not in _NOT_SHARED}
    used = {name for _, text in texts_in(data) for name in names_in(text)}
    return frozenset(used | set(read_config(path).allowed_variables))


def read_config(path: Path | str) -> ProjectConfig:
    """The config file as a model; what is wrong is reported with its place in the file."""
    check_trusted(Path(path))
    located = read_mapping(Path(path))
    try:
        return ProjectConfig.model_validate(located.data)
    except ValidationError as error:
        problems = problems_of(error, located.data, ProjectConfig)
        raise InvalidInput(*map(located.placed, problems)) from None
