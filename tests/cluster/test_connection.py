"""The folder of a cluster that is started here, and what is said where one cannot be used."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.cluster import connection
from evalstudio.cluster.connection import ClusterUnavailable
from evalstudio.project.config import ExecutionSettings


class Ray:
    """Ray, as far as it is asked here: it starts nothing, or says why not."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error, self.folder = error, Path()

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        if self._error is not None:
            raise self._error
        self.folder = Path(options["_temp_dir"]).parent

    def shutdown(self) -> None:
        pass


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder for temporary files whose name is as short as Ray needs it."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with tempfile.TemporaryDirectory(prefix="es-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def use(monkeypatch: pytest.MonkeyPatch, ray: Ray) -> Ray:
    monkeypatch.setattr(connection, "_import_ray", lambda _: ray)
    return ray


# Opens a file in the folder that it is given and stays, as the agents of a cluster do whose head is gone.
LEFT_OVER = (
    "import sys, time; file = open(sys.argv[1] + '/log', 'w'); print('open', flush=True); time.sleep(600)"
)


def test_what_a_killed_command_left_is_removed_by_the_next(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned = temporary / "evalstudio-killed"
    (abandoned / "ray").mkdir(parents=True)
    (abandoned / "owner").touch()
    (temporary / "evalstudio-other").mkdir()
    first, second = Ray(), Ray()
    left_over = [sys.executable, "-c", LEFT_OVER, str(abandoned)]
    with subprocess.Popen(left_over, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        use(monkeypatch, first)
        with connection.open_cluster(ExecutionSettings(type="ray")):
            use(monkeypatch, second)
            # One that is in use stays, and so does what is somebody else's.
            with connection.open_cluster(ExecutionSettings(type="ray")):
                assert first.folder.is_dir()
                assert second.folder.is_dir()
        try:
            assert process.wait(timeout=60) < 0
        finally:
            process.kill()
    assert [one.name for one in temporary.iterdir()] == ["evalstudio-other"]


def test_a_folder_of_its_own_is_found_where_the_usual_one_has_a_long_name(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that all users share would let them into the cluster."""
    (temporary / ("long" * 10)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / ("long" * 10)))
    ray = use(monkeypatch, Ray())
    with connection.open_cluster(ExecutionSettings(type="ray")):
        assert ray.folder.parent == Path("/tmp")
        assert ray.folder.stat().st_mode & 0o777 == 0o700
    assert not ray.folder.exists()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError(
                "Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.7"
            ),
            "cannot be used: Version mismatch: The cluster was started with: Ray: 2.60.0 Python: 3.11.7",
        ),
        (ConnectionError("Failed to connect"), "Failed to connect (RAY_AUTH_TOKEN must be the cluster's)"),
    ],
)
def test_why_a_cluster_cannot_be_used_is_told(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Ray(error))
    monkeypatch.setattr(connection, "_check_reachable", lambda _: None)
    settings = ExecutionSettings(type="ray", address="127.0.0.1:6379")
    with pytest.raises(ClusterUnavailable) as told, connection.open_cluster(settings):
        pass
    assert str(told.value).endswith(words)


def test_a_plugin_that_imported_ray_before_its_token_was_set_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setitem(sys.modules, "ray", cast(Any, Ray()))
    settings = ExecutionSettings(type="ray")
    with pytest.raises(InvalidInput, match="import ray inside"), connection.open_cluster(settings):
        pass


class GcsClient:
    """Of a cluster that refuses whoever asks."""

    def __init__(self, address: str) -> None:
        raise RuntimeError(address)


def test_a_version_of_ray_that_knows_no_tokens_is_not_asked_about_one() -> None:
    old = SimpleNamespace(_raylet=SimpleNamespace(GcsClient=GcsClient), exceptions=SimpleNamespace())
    connection._check_token(old, "127.0.0.1:6379")


def test_a_token_is_checked_where_the_standard_error_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: int) -> int:
        raise OSError(9, "Bad file descriptor")

    known = SimpleNamespace(AuthenticationError=RuntimeError)
    ray = SimpleNamespace(_raylet=SimpleNamespace(GcsClient=GcsClient), exceptions=known)
    monkeypatch.setattr(connection.os, "dup", closed)
    with pytest.raises(ClusterUnavailable, match="asks for a token"):
        connection._check_token(ray, "127.0.0.1:6379")
