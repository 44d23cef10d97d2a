"""Where the results of shards are kept: a folder of this machine, or one at an address."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import orjson

from ..base.files import open_regular
from ..base.lazy_dataclass import dataclass
from .addresses import Address
from .datasets import DatasetError

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Start:
    """A command that writes to a folder.

    ``job`` stays the same when it is resumed and is in the names of all files, so that results of two jobs
    are never taken for those of one. ``token`` is new each time: who no longer finds it in the manifest has
    been taken over from.
    """

    job: str = ""
    token: str = ""


class ShardFolder(Protocol):
    """Files with names; each is there as a whole or not at all once it is closed."""

    @property
    def name(self) -> str: ...
    @property
    def start(self) -> Start: ...
    @property
    def tells_ids(self) -> bool: ...
    def listing(self) -> dict[str, int]: ...
    def read(self, name: str) -> bytes: ...
    def open(self, name: str) -> BinaryIO: ...
    def create(self, name: str) -> BinaryIO: ...
    def close(self, file: BinaryIO) -> None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder on a disk. What is written is on it when the call returns."""

    path: Path
    start: Start = Start()

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def tells_ids(self) -> bool:
        """Whether the ids of records are read from here anyway."""
        return True

    def listing(self) -> dict[str, int]:
        """Files alone: what is linked here is somewhere else."""
        if not self.path.is_dir():
            return {}
        with os.scandir(self.path) as entries:
            files = [one for one in entries if one.is_file(follow_symlinks=False)]
            return {one.name: one.stat(follow_symlinks=False).st_size for one in files}

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return file.read()

    def open(self, name: str) -> BinaryIO:
        return open_regular(self.path / name)

    def create(self, name: str) -> BinaryIO:
        return (self.path / name).open("wb")

    def close(self, file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def write(self, name: str, data: bytes) -> None:
        write_safely(self.path / name, data)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class AddressFolder:
    """A folder at an address, which everybody sees alike."""

    address: Address
    start: Start = Start()

    @property
    def name(self) -> str:
        return self.address.name

    @property
    def tells_ids(self) -> bool:
        return False

    def listing(self) -> dict[str, int]:
        return self.address.listing()

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return file.read()

    def open(self, name: str) -> BinaryIO:
        return self.address.open(name)

    def create(self, name: str) -> BinaryIO:
        return self.address.create(name)

    def close(self, file: BinaryIO) -> None:
        file.close()

    def write(self, name: str, data: bytes) -> None:
        file = self.create(name)
        file.write(data)
        file.close()

    def remove(self, name: str) -> None:
        self.address.remove(name)


_TRIES = 5
_PAUSE_SECONDS = 0.05


def check_start(folder: ShardFolder) -> None:
    """Refuse to go on where another command has begun to write: at an address nothing can be locked."""
    if not is_current(folder):
        message = "another command has begun to write there; run again into a folder of its own"
        raise DatasetError(f"{folder.name}: {message}")


def is_current(folder: ShardFolder) -> bool:
    """Whether this is the folder of the command, and not one of the same name on another machine."""
    for left in reversed(range(_TRIES)):
        try:
            manifest: Any = orjson.loads(folder.read(MANIFEST))
            return manifest["token"] == folder.start.token
        except orjson.JSONDecodeError:
            # At an address it is read in several requests, between which it may have been written anew.
            if left:
                time.sleep(_PAUSE_SECONDS)
        except (OSError, KeyError, TypeError):
            return False
    return False


def write_safely(path: Path, data: bytes) -> None:
    """The whole file or nothing, on the disk when this returns."""
    written = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(written, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, path)
    finally:
        written.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
