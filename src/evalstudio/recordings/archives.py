"""Zip archives: the logs that Inspect writes, and files that somebody packed together."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from io import BufferedReader
from typing import Any, cast

from ..base.paths import fields_of
from .documents import Document, Unreadable, decode, read_documents
from .json_stream import LONGEST, TOO_LARGE

MOST_MEMBERS = 1_000_000
# Text shrinks to a twentieth; what shrinks to less than this was made to fill a disk.
_MOST_SHRUNK = 500
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
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
    if problem := _problem(member):
        yield Unreadable(name, None, problem)
        return
    try:
        with archive.open(member) as file:
            yield from read_documents(BufferedReader(cast(Any, file)), name)
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
    if problem := _problem(member):
        raise ValueError(problem)
    with archive.open(member) as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(TOO_LARGE)
    return content


def _problem(member: zipfile.ZipInfo) -> str | None:
    if member.flag_bits & 1:
        return "is encrypted"
    if member.file_size > LONGEST and member.file_size > _MOST_SHRUNK * max(member.compress_size, 1):
        return f"unpacks to more than {_MOST_SHRUNK} times its size"
    return None
