"""Locks between processes: one holder, released with the file, missing ones in nobody's way."""

from __future__ import annotations

import errno
import fcntl
import threading
from pathlib import Path

import pytest

from evalstudio.base.locks import lock


def test_a_file_has_one_holder_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("ab") as first, path.open("ab") as second:
        assert lock(first)
        assert not lock(second)
        first.close()
        assert lock(second)


def test_waiting_lasts_until_the_file_is_free(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("ab") as first, path.open("ab") as second:
        assert lock(first)
        timer = threading.Timer(0.1, first.close)
        timer.start()
        assert lock(second, wait=True)
        timer.join()
        assert first.closed


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (tmp_path / "file").open("ab") as file:
        assert lock(file)
        assert lock(file, wait=True)
