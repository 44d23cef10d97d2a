"""Where a dataset is: a path, or an address such as ``s3://bucket/records.jsonl``."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any

from ..base.extras import needs_extra
from ..base.files import open_regular
from .datasets import DatasetError, check_readable

_BUFFER_BYTES = 1 << 20


def is_address(name: str) -> bool:
    return "://" in name


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A file of records that can be read from any place in it.

    ``place`` is where it is, if that is not what it is called in messages.
    """

    name: str
    place: str = ""

    @property
    def at(self) -> str:
        return self.place or self.name

    @property
    def suffix(self) -> str:
        return Path(self.at.partition("?")[0]).suffix.lower()

    @property
    def is_file(self) -> bool:
        """Whether it can be read in parts; a pipe cannot."""
        return is_address(self.at) or Path(self.at).is_file()

    def check(self) -> None:
        """Refuse what is no dataset."""
        if not is_address(self.at):
            check_readable(Path(self.at))
        elif not self.size:
            raise DatasetError(f"{self.name}:1: is empty; a dataset needs at least one record")

    @property
    def size(self) -> int:
        if not is_address(self.at):
            return Path(self.at).stat().st_size
        system, path = self._remote()
        info = self._explained(system.get_file_info, path)
        if not info.is_file:
            raise DatasetError(f"{self.name}: there is no such file, or it is a folder")
        return info.size or 0

    def open(self) -> BufferedReader:
        if not is_address(self.at):
            return open_regular(Path(self.at))
        system, path = self._remote()
        return BufferedReader(self._explained(system.open_input_file, path), _BUFFER_BYTES)

    def _remote(self) -> tuple[Any, str]:
        with needs_extra("ray", f"{self.name}: reading from an address", DatasetError):
            filesystem: Any = import_module("pyarrow.fs")
        return self._explained(filesystem.FileSystem.from_uri, self.at)

    def _explained(self, operation: Any, *arguments: Any) -> Any:
        try:
            return operation(*arguments)
        except (OSError, ValueError) as error:
            raise DatasetError(f"{self.name}: cannot be read: {str(error).splitlines()[0]}") from None
