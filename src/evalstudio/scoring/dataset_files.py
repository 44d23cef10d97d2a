"""Where a dataset is: a path, or an address such as ``s3://bucket/records.jsonl``."""

from __future__ import annotations

from io import BufferedReader
from pathlib import Path

from ..base.files import open_regular
from ..base.lazy_dataclass import dataclass
from .addresses import Address, is_address
from .datasets import DatasetError, check_readable


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
        size = Address(self.at).size()
        if size is None:
            raise DatasetError(f"{self.name}: there is no such file, or it is a folder")
        return size

    def open(self) -> BufferedReader:
        return Address(self.at).open() if is_address(self.at) else open_regular(Path(self.at))
