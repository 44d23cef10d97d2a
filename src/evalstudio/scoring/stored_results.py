"""Results read again as one, wherever they are: a file, or shards in a folder at an address."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.problems import InvalidInput
from .addresses import Address, is_address
from .datasets import DatasetError
from .result_lines import BadResult, read_result
from .results_file import UNFINISHED, read_note
from .shard_descriptions import (
    BadShard,
    Manifest,
    ShardDescription,
    description_name,
    latest_descriptions,
    read_descriptions,
    read_manifest,
    shard_results,
)
from .shard_folders import MANIFEST, AddressFolder

ResultsPlace = Path | Address


def results_place(name: str) -> ResultsPlace:
    return Address(name) if is_address(name) else Path(name)


def is_there(place: ResultsPlace) -> bool:
    """Whether there are results to read."""
    if isinstance(place, Path):
        return place.is_file()
    return MANIFEST in place.listing()


def is_same_place(one: ResultsPlace, other: ResultsPlace) -> bool:
    if isinstance(one, Path) and isinstance(other, Path):
        return one.resolve() == other.resolve()
    return str(one).rstrip("/") == str(other).rstrip("/")


def written_at(place: ResultsPlace) -> datetime:
    """When results were last written."""
    if isinstance(place, Path):
        return datetime.fromtimestamp(place.stat().st_mtime, UTC)
    return place.modified(MANIFEST)


def note_at(place: ResultsPlace) -> dict[str, Any]:
    """How results were scored, and whether that came to its end; empty where it is not known."""
    if isinstance(place, Path):
        return read_note(place) or {}
    manifest = _manifest(AddressFolder(place))
    partial = None if manifest.is_complete else manifest.partial or UNFINISHED
    return {**manifest.settings, **({"partial": partial} if partial else {})}


def each_result(place: ResultsPlace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every result with its number; ``BadResult`` at the first line that is none."""
    return _of_file(place) if isinstance(place, Path) else enumerate(_of_shards(AddressFolder(place)), 1)


def _of_file(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                result = read_result(line)
            except (ValueError, KeyError, TypeError) as error:
                raise BadResult(number, f"{type(error).__name__}: {error}") from None
            yield number, result


def _of_shards(folder: AddressFolder) -> Iterator[dict[str, Any]]:
    for shard in _shards(folder):
        yield from shard_results(folder, shard)


def _shards(folder: AddressFolder) -> list[ShardDescription]:
    """Those that count, in order: the ones that the manifest names, or all there are so far."""
    manifest, listing = _manifest(folder), folder.listing()
    try:
        if manifest.results is None:
            return [*latest_descriptions(folder, manifest, listing).values()]
        shards = read_descriptions(folder, map(description_name, manifest.results))
    except (BadShard, DatasetError) as error:
        raise _unreadable(folder, str(error)) from None
    numbers = [shard.number for shard in shards]
    if numbers != (list(range(len(numbers))) if manifest.is_complete else sorted({*numbers})):
        raise _unreadable(folder, f"{MANIFEST} does not name each shard once, in order")
    for shard in shards:
        if listing.get(shard.results or "") != shard.size:
            raise _unreadable(folder, f"{shard.results} is missing, or not as long as it was")
    return shards


def _manifest(folder: AddressFolder) -> Manifest:
    if not is_there(folder.address):
        raise InvalidInput(f"{folder.name}: holds no results of evalstudio score")
    try:
        return read_manifest(folder)
    except BadShard as error:
        raise _unreadable(folder, str(error)) from None


def _unreadable(folder: AddressFolder, reason: str) -> InvalidInput:
    advice = "what is missing is scored again by score --resume"
    return InvalidInput(f"{folder.name}: the results cannot be read: {reason}; {advice}")
