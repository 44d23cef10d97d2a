"""What workers on other machines are sent: the folder of the project, and the variables it refers to."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..base.files import read_mapping
from ..base.lazy_dataclass import dataclass
from ..base.paths import texts_in
from ..base.problems import InvalidInput
from ..base.references import names_in
from ..base.trust import VARIABLE as TRUST
from ..llm.settings import KEY_VARIABLES
from ..plugins.loading import is_path, path_of
from ..project.config import ProjectConfig, read_config
from ..project.secrets import KEY_VARIABLE
from ..version import __version__
from .connection import Cluster, SentProject

_USUAL = frozenset({TRUST, KEY_VARIABLE, *(name for names in KEY_VARIABLES.values() for name in names)})


def variables_of(settings: Iterable[Any], more: Iterable[str] = ()) -> dict[str, str]:
    """The environment variables that settings refer to, those of keys, and more by name."""
    names = {name for one in settings for _, text in texts_in(one) for name in names_in(text)}
    return {name: os.environ[name] for name in sorted(names | _USUAL | {*more}) if name in os.environ}


def check_version(version: str) -> None:
    """A worker of another version would come to other results."""
    if version != __version__:
        message = f"{socket.gethostname()} has evalstudio {__version__}, and the command {version}"
        raise InvalidInput(f"{message}; install the same on all nodes")


def check_inside(root: Path, files: Iterable[Path]) -> None:
    if outside := next((path for path in files if not path.is_relative_to(root)), None):
        raise InvalidInput(f"{outside} is not in {root}, which is sent to the cluster; put it there")


@dataclass(frozen=True, slots=True)
class SentConfig:
    """The project as a worker opens it."""

    config_path: Path
    variables: dict[str, str]
    version: str = __version__

    def enter(self) -> None:
        """To be called by the worker, before anything else."""
        check_version(self.version)
        os.environ.update(self.variables)


def project_folder(config_path: Path) -> SentProject:
    return SentProject(config_path.resolve().parent)


def sent_config(config_path: Path, cluster: Cluster) -> SentConfig:
    """The config file for workers; refused where they could not open its database."""
    config, root = read_config(config_path), config_path.resolve().parent
    _check_storage(config, cluster)
    variables = variables_of([read_mapping(config_path).data], config.allowed_variables)
    if cluster.is_local:
        return SentConfig(config_path.resolve(), variables)
    check_inside(root, (path_of(name, root) for name in config.all_plugins if is_path(name)))
    return SentConfig(Path(config_path.name), variables)


def _check_storage(config: ProjectConfig, cluster: Cluster) -> None:
    if config.storage.type == "sqlite" and not (cluster.is_local and cluster.machines == 1):
        message = "SQLite is a file of one machine, which workers on a cluster do not see"
        advice = "use PostgreSQL (storage.type), or leave execution.address out to work on this machine alone"
        raise InvalidInput(f"{message}; {advice}")
