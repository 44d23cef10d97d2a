"""A connection to a Ray cluster: one that runs elsewhere, or one of this machine alone, started for it.

A cluster that is started here listens on loopback, asks for a token that nobody else knows, and ends with
this process. Code that has connected to Ray itself keeps its own connection.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..base.extras import needs_extra
from ..base.lazy_dataclass import dataclass
from ..base.locks import lock
from ..base.outages import Unavailable
from ..base.problems import InvalidInput
from ..base.signals import keep_handlers
from ..project.config import ExecutionSettings

NAMESPACE = "evalstudio"
_STORE_BYTES = 200 << 20
_REACH_SECONDS = 10.0
_STARTS = 3
# Unix sockets have short paths, and Ray's own part of them takes some seventy characters.
_LONGEST_FOLDER = 34
_LONGEST_REASON = 400
_PREFIX, _OWNER = "evalstudio-", "owner"
_IMPORTED_BEFORE = (
    "a cluster of this machine needs a token, which Ray reads when it is imported, and a plugin or a program "
    "has imported it before: have it import ray inside of the functions that use it"
)
_NOT_SENT = (".git", ".venv", "node_modules", "__pycache__", "data")


class ClusterUnavailable(Unavailable):
    """The cluster cannot be reached."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """An open connection, through the library itself."""

    ray: Any
    is_local: bool

    @property
    def machines(self) -> int:
        """Several nodes may be processes of one machine."""
        return len({node["NodeManagerHostname"] for node in self.ray.nodes() if node["Alive"]})

    @property
    def cpus(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))


@dataclass(frozen=True, slots=True)
class SentProject:
    """The folder that workers on other machines get a copy of, and what of it they do not need."""

    folder: Path
    excluded: tuple[str, ...] = ()


@contextmanager
def open_cluster(
    settings: ExecutionSettings, cpus: int | None = None, project: SentProject | None = None
) -> Generator[Cluster]:
    """A connection to the cluster of the settings, of ``RAY_ADDRESS``, or to one that is started here."""
    address = settings.address or os.environ.get("RAY_ADDRESS", "").strip()
    address = None if address in ("", "local") else address
    ray = _import_ray(address)
    if ray.is_initialized():
        yield Cluster(ray, is_local=True)
        return
    with _private_folder() if address is None else nullcontext() as folder:
        try:
            _connect(ray, address, cpus, project, folder)
            yield Cluster(ray, is_local=address is None)
        finally:
            ray.shutdown()


def _import_ray(address: str | None) -> Any:
    """The library; it reads these variables when it is imported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        if (
            "ray" in sys.modules
            and "RAY_AUTH_TOKEN" not in os.environ
            and not sys.modules["ray"].is_initialized()
        ):
            raise InvalidInput(_IMPORTED_BEFORE)
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # Without it nodes listen on the machine's own address; the name is that of a side effect.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    with needs_extra("ray", "--on ray", InvalidInput):
        ray: Any = import_module("ray")
        worker: Any = import_module("ray._private.worker")
        utils: Any = import_module("ray._private.utils")
    # Notices of ended workers go to the standard output, whatever the log level.
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = _do_nothing
    # SIGTERM would end the process on the spot, while it is ours to say what is kept and how to go on.
    if hasattr(utils, "set_sigterm_handler"):
        utils.set_sigterm_handler = _do_nothing
    return ray


def _do_nothing(*_: object, **__: object) -> None:
    pass


@contextmanager
def _private_folder() -> Generator[Path | None]:
    """A folder that nobody else may enter: Ray opens the one it is given, inside of it, to everybody."""
    places = (tempfile.gettempdir(), "/tmp")
    parent = next((one for one in places if len(one) <= _LONGEST_FOLDER and Path(one).is_dir()), None)
    if parent is None:
        yield None
        return
    _remove_abandoned(Path(parent))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    try:
        with open(folder / "new", "wb") as owner:
            lock(owner)
            # Only now it has the name by which others look for it.
            os.rename(folder / "new", folder / _OWNER)
            yield folder
    finally:
        _remove(folder)


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of commands that were killed, which no longer hold the lock of theirs."""
    if find_spec("fcntl") is None:
        return
    for owner in parent.glob(f"{_PREFIX}*/{_OWNER}"):
        with suppress(OSError), open(owner, "r+b") as file:
            if lock(file):
                _remove(owner.parent)


def _remove(folder: Path) -> None:
    _end_all_in(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _end_all_in(folder: Path) -> None:
    """End what is left of a cluster: processes that have a file in its folder open.

    A closed terminal ends some of them before the others, which would then stay for minutes.
    """
    for process in Path("/proc").glob("[0-9]*"):
        # This process may still have its log open there.
        if int(process.name) == os.getpid():
            continue
        with suppress(OSError):
            if any(os.readlink(one).startswith(f"{folder}/") for one in (process / "fd").iterdir()):
                os.kill(int(process.name), signal.SIGKILL)


def _connect(
    ray: Any, address: str | None, cpus: int | None, project: SentProject | None, folder: Path | None
) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": NAMESPACE}
    if address is None:
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        options |= {"_temp_dir": folder and f"{folder}/ray"}
    else:
        if address != "auto":
            _check_reachable(address)
        if project is not None:
            options["runtime_env"] = {
                "working_dir": str(project.folder),
                "excludes": [*_NOT_SENT, *project.excluded],
            }
    try:
        if address is not None:
            _check_token(ray, address)
        _start(ray, address, options)
    except ClusterUnavailable:
        raise
    except Exception as error:
        where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
        # Ray writes in lines what the versions are that differ.
        reason = (" ".join(str(error).split()) or type(error).__name__)[:_LONGEST_REASON]
        is_refused = address is not None and isinstance(error, ConnectionError)
        hint = " (RAY_AUTH_TOKEN must be the cluster's)" if is_refused else ""
        raise ClusterUnavailable(f"{where} cannot be used: {reason}{hint}") from None


def _start(ray: Any, address: str | None, options: dict[str, Any]) -> None:
    """Ray gives a node half a minute to start, which a busy machine may not have; then it is tried again."""
    for left in reversed(range(_STARTS)):
        try:
            with keep_handlers():
                ray.init(address=address or "local", **options)
            return
        except Exception as error:
            if address is not None or not left or "timed out during startup" not in str(error):
                raise


def _check_reachable(address: str) -> None:
    """Ray itself tries for minutes, and may end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(
            f'the address of a Ray cluster is HOST:PORT, such as 10.0.0.5:6379, not "{address}"'
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ClusterUnavailable(f"the Ray cluster at {address} cannot be reached: {reason}") from None


def _check_token(ray: Any, address: str) -> None:
    """Ray itself tries a token that is not the cluster's for twenty seconds, deaf to signals."""
    client = getattr(getattr(ray, "_raylet", None), "GcsClient", None)
    refused = getattr(getattr(ray, "exceptions", None), "AuthenticationError", None)
    if client is None or refused is None or address == "auto" or "://" in address:
        return
    try:
        with _without_standard_error():
            client(address=address)
    except refused:
        message = "asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to that of the cluster"
        raise ClusterUnavailable(f"the Ray cluster at {address} {message}") from None


@contextmanager
def _without_standard_error() -> Generator[None]:
    """Native code writes its own lines, whatever the log level; what is wrong is raised as well."""
    try:
        kept = os.dup(2)
    except OSError:
        # It is closed already.
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
