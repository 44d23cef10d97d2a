"""Files: those that hold secrets are their owner's alone, and what is no file is not waited for."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.command_line import evalstudio
from tests.support.projects import make_project, scripted

from evalstudio.base.files import read_text
from evalstudio.base.problems import InvalidInput
from evalstudio.cassettes import Cassette, CassetteError
from evalstudio.llm.cache import AnswerCache
from evalstudio.plugins import PluginError
from evalstudio.plugins.loading import find_plugin
from evalstudio.project.config import StorageSettings, read_config
from evalstudio.project.secrets import SecretBox
from evalstudio.scoring.datasets import DatasetError, read_chunks
from evalstudio.storage.json_lines import iter_results
from evalstudio.storage.opening import open_store


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that takes nothing away: what is private must have been made so."""
    old = os.umask(0)
    try:
        yield
    finally:
        os.umask(old)


@pytest.mark.usefixtures("careless")
class TestPrivateFiles:
    async def test_the_database_and_what_stands_beside_it_are_the_owners(self, tmp_path: Path) -> None:
        store = await open_store(StorageSettings(), tmp_path)
        try:
            await store.last_event_id()
            files = sorted((tmp_path / "data").iterdir())
            assert {path.name for path in files} >= {
                "evalstudio.db",
                "evalstudio.db-wal",
                "evalstudio.db-shm",
            }
            assert {path.name: mode_of(path) for path in files} == {path.name: 0o600 for path in files}
            assert mode_of(tmp_path / "data") == 0o700
        finally:
            await store.close()

    async def test_a_database_that_everybody_could_read_is_taken_back(self, tmp_path: Path) -> None:
        await (await open_store(StorageSettings(), tmp_path)).close()
        database = tmp_path / "data" / "evalstudio.db"
        database.chmod(0o644)
        await (await open_store(StorageSettings(), tmp_path)).close()
        assert mode_of(database) == 0o600
        # What was opened for a group alone was meant so.
        database.chmod(0o660)
        await (await open_store(StorageSettings(), tmp_path)).close()
        assert mode_of(database) == 0o660

    def test_the_key_is_the_owners(self, tmp_path: Path) -> None:
        key = tmp_path / "data" / "secret.key"
        sealed = SecretBox(key).seal_text("hush")
        assert (mode_of(key), mode_of(key.parent)) == (0o600, 0o700)
        key.chmod(0o644)
        assert SecretBox(key).open_text(sealed) == "hush"
        assert mode_of(key) == 0o600

    async def test_what_models_answered_is_the_owners(self, tmp_path: Path) -> None:
        cache = AnswerCache(tmp_path / "data" / "answers")
        await cache.put("a" * 32, {"text": "the patient's name"})
        below = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
        assert {mode_of(path) for path in below if path.is_dir()} == {0o700}
        assert {mode_of(path) for path in below if path.is_file()} == {0o600}


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    return path


@pytest.mark.parametrize("make", [pipe, device])
class TestWhatIsNoFile:
    def test_a_definition_or_config(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        path = make(tmp_path / "evalstudio.config.json")
        with pytest.raises(InvalidInput, match=r"is a (pipe|device), not a file"):
            read_config(path)
        with pytest.raises(InvalidInput, match="not a file"):
            read_text(path)

    @pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
    def test_a_dataset(self, tmp_path: Path, make: Callable[[Path], Path], suffix: str) -> None:
        with pytest.raises(DatasetError, match="not a file"):
            list(read_chunks(make(tmp_path / f"data.{suffix}")))

    def test_a_cassette(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        path = make(tmp_path / "cassette.jsonl")
        with pytest.raises((InvalidInput, CassetteError), match="not a file"), Cassette.replay(path):
            pass
        with pytest.raises(CassetteError, match="not a file"), Cassette.record(path):
            pass

    def test_results(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        with pytest.raises(InvalidInput, match="not a file"):
            next(iter_results(make(tmp_path / "results.jsonl")))

    def test_a_plugin(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        make(tmp_path / "plugin.py")
        with pytest.raises(PluginError, match="not a Python file"):
            find_plugin("./plugin.py", tmp_path)

    def test_the_command_says_so_and_ends(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        folder = make_project(tmp_path / "project", []).parent
        make(folder / "case.yaml")
        applied = evalstudio("apply", "case.yaml", cwd=folder)
        assert applied.returncode == 2
        assert "not a file" in applied.stderr

    def test_a_file_of_cases(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        scenario = {**scripted("talks", "hi {{name}}"), "cases": "cases.jsonl"}
        folder = make_project(tmp_path / "project", [scenario]).parent
        make(folder / "cases.jsonl")
        applied = evalstudio("apply", "evals.json", cwd=folder)
        assert applied.returncode == 2, applied.stdout
        # A link that leads out of the project is refused before anybody asks what it leads to.
        assert "not a file" in applied.stderr or "leads out of the project" in applied.stderr


def test_a_socket_is_no_file_either(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text(listening(tmp_path / "s"))
