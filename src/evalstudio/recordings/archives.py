"""Zip archives: the logs that Inspect writes, and files that somebody packed together."""

from __future__ import annotations

import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BufferedReader
from typing import Any, BinaryIO, cast

from ..base.extras import needs_extra
from ..base.paths import fields_of
from .documents import Document, Unreadable, decode, read_documents
from .json_stream import LONGEST, TOO_LARGE

MOST_MEMBERS = 1_000_000
# Text shrinks to a twentieth; what shrinks to less than this was made to fill a disk.
_MOST_SHRUNK = 500
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_ZSTD = 93
# Where a member's own header says how long its name and its extra field are.
_NAME_LENGTHS = 26
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError)


def read_archive(file: BufferedReader, origin: str) -> Iterator[tuple[str, Iterator[Document | Unreadable]]]:
    """The name and the documents of every file in an archive, sorted."""
    try:
        archive = zipfile.ZipFile(file)
    except (*_BROKEN, ValueError) as error:
        yield origin, iter([Unreadable(origin, None, f"is no whole zip archive: {error}")])
        return
    with archive:
        members = sorted(
            (one for one in archive.infolist() if not one.is_dir()), key=lambda one: one.filename
        )
        if len(members) > MOST_MEMBERS:
            yield origin, iter([Unreadable(origin, None, f"holds more than {MOST_MEMBERS:,} files")])
            return
        names = {one.filename for one in members}
        header = next((name for name in _HEADERS if name in names), None)
        for member in members:
            name = f"{origin}/{member.filename}"
            if header is None:
                yield name, _plain(archive, member, name)
            elif member.filename.startswith(_SAMPLES):
                yield name, _sample(archive, member, name, header)


def _plain(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Iterator[Document | Unreadable]:
    try:
        with _opened(archive, member) as file:
            yield from read_documents(BufferedReader(cast(Any, file)), name)
    except ValueError as error:
        yield Unreadable(name, None, str(error))
    except _BROKEN as error:
        yield Unreadable(name, None, f"cannot be unpacked: {error}")


def _sample(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, header: str
) -> Iterator[Document | Unreadable]:
    """A sample of an Inspect log, in the shape it has where the log is one JSON document."""
    try:
        evaluation = fields_of(decode(_content(archive, archive.getinfo(header)))).get("eval")
        sample = decode(_content(archive, member))
        yield Document(1, {"eval": evaluation, "samples": [sample]})
    except ValueError as error:
        yield Unreadable(name, 1, str(error))
    except _BROKEN as error:
        yield Unreadable(name, None, f"cannot be unpacked: {error}")


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with _opened(archive, member) as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(TOO_LARGE)
    return content


def _opened(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    """A member, unpacked as it is read. ``ValueError`` where it must not or cannot be."""
    if member.flag_bits & 1:
        raise ValueError("is encrypted")
    if member.file_size > LONGEST and member.file_size > _MOST_SHRUNK * max(member.compress_size, 1):
        raise ValueError(f"unpacks to more than {_MOST_SHRUNK} times its size")
    if member.compress_type == _ZSTD and sys.version_info < (3, 14):
        return _unpacked_zstd(archive, member)
    return cast(BinaryIO, archive.open(member))


def _unpacked_zstd(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    """What Inspect packs with zstd, which Python's own library reads from 3.14 on."""
    with needs_extra("inspect", "it is packed with zstd, and reading that", ValueError):
        zstandard: Any = import_module("zstandard")
    file = cast(BinaryIO, archive.fp)
    file.seek(member.header_offset + _NAME_LENGTHS)
    file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
    packed = _Slice(file, member.compress_size)
    return cast(BinaryIO, zstandard.ZstdDecompressor(max_window_size=LONGEST).stream_reader(packed))


class _Slice:
    """So many bytes of a file from where it stands."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data
