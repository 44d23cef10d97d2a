"""Files at addresses such as ``s3://bucket/records.jsonl``, through Arrow's file systems.

Where a server is and who asks is taken from the usual variables, such as ``AWS_ENDPOINT_URL``. What is shown
of an address has neither credentials nor a query.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

from ..base.addresses import shown_address
from ..base.extras import needs_extra
from ..base.lazy_dataclass import dataclass
from .datasets import DatasetError

_BUFFER_BYTES = 1 << 20
VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)
_SECRET = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def is_address(name: str) -> bool:
    return "://" in name


@dataclass(frozen=True, slots=True)
class Address:
    """A place that is no path. What goes wrong there is a ``DatasetError``."""

    text: str

    @property
    def name(self) -> str:
        """As it may be shown."""
        return shown_address(self.text)

    def __str__(self) -> str:
        return self.name

    def size(self) -> int | None:
        """How long the file is; nothing where there is none."""
        system, path = self._system("read")
        info = self.attempt("read", system.get_file_info, path)
        return (info.size or 0) if info.is_file else None

    def open(self, name: str = "") -> BufferedReader:
        """The file, or one below."""
        system, path = self._system("read")
        place = f"{path}/{name}" if name else path
        if system.type_name == "local" and not self.attempt("read", system.get_file_info, place).is_file:
            # A pipe would be waited for.
            raise DatasetError(f"{self.name}{name}: cannot be read: there is no such file")
        file = self.attempt("read", system.open_input_file, place)
        return BufferedReader(_Reader(self, file), _BUFFER_BYTES)

    def create(self, name: str) -> BinaryIO:
        """A new file below; there, as a whole, once it is closed."""
        system, path = self._system("written")
        target = f"{path}/{name}"
        if system.type_name != "local":
            return cast(BinaryIO, _Writer(self, self.attempt("written", system.open_output_stream, target)))
        # On a disk a file is seen while it is written, and half of it after a kill.
        self.attempt("written", system.create_dir, path)
        written = f"{path}/.{name}.{secrets.token_hex(4)}"
        file = self.attempt("written", system.open_output_stream, written)
        return cast(BinaryIO, _Writer(self, file, lambda: system.move(written, target)))

    def listing(self) -> dict[str, int]:
        """The files directly below, and their sizes."""
        system, path = self._system("read")
        selector: Any = import_module("pyarrow.fs").FileSelector(path, allow_not_found=True)
        files = self.attempt("read", system.get_file_info, selector)
        return {info.base_name: info.size or 0 for info in files if info.is_file}

    def modified(self, name: str) -> datetime:
        """When a file below was last written."""
        system, path = self._system("read")
        info = self.attempt("read", system.get_file_info, f"{path}/{name}")
        if not info.is_file:
            raise DatasetError(f"{self.name}: cannot be read: it has no {name}")
        return datetime.fromtimestamp(info.mtime_ns / 1e9, UTC)

    def remove(self, name: str) -> None:
        """Remove a file below, if it is there."""
        system, path = self._system("written")

        def delete() -> None:
            with suppress(FileNotFoundError):
                system.delete_file(f"{path}/{name}")

        self.attempt("written", delete)

    def _system(self, verb: str) -> tuple[Any, str]:
        with needs_extra("s3", f"{self.name}: an address", DatasetError):
            import_module("pyarrow.fs")
        return self.attempt(verb, _file_system, self.text, tuple(os.environ.get(name) for name in VARIABLES))

    def attempt(self, verb: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        """What an operation returns; what goes wrong with it is told without secrets."""
        try:
            return operation(*arguments)
        except (OSError, ValueError) as error:
            raise self._problem(verb, error) from None

    def _problem(self, verb: str, error: Exception) -> DatasetError:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = reason.replace(self.text, self.name)
        for secret in (os.environ.get(name) for name in _SECRET):
            reason = reason.replace(secret, "…") if secret else reason
        return DatasetError(f"{self.name}: cannot be {verb}: {reason}")


@lru_cache(maxsize=16)
def _file_system(text: str, _: tuple[str | None, ...]) -> tuple[Any, str]:
    """The file system of an address, as the variables have it, and the path in it; connections are kept."""
    filesystem: Any = import_module("pyarrow.fs")
    system, path = filesystem.FileSystem.from_uri(text)
    return system, path.rstrip("/")


class _Reader(RawIOBase):
    """A file at an address, from any place in it."""

    def __init__(self, address: Address, file: Any) -> None:
        self._address, self._file = address, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._address.attempt("read", self._file.readinto, buffer)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """As on a disk, where a place behind the end is one from which nothing is read."""
        size: int = self._address.attempt("read", self._file.size)
        place = offset + (0, self._file.tell(), size)[whence]
        return self._address.attempt("read", self._file.seek, min(place, size))

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Writer:
    """A file at an address that is being written."""

    def __init__(self, address: Address, file: Any, finish: Callable[[], object] = lambda: None) -> None:
        self._address, self._file, self._finish = address, file, finish
        self._is_closed = False

    def write(self, data: bytes) -> int:
        return self._address.attempt("written", self._file.write, data)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._address.attempt("written", self._file.close)
            self._address.attempt("written", self._finish)
