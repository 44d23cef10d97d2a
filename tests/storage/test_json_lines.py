"""Results kept as JSON lines: appended by several processes, torn by crashes, read back by filter."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from evalstudio import run_evaluation
from evalstudio.storage.json_lines import JsonFileStorageProvider, iter_results

WEST = timezone(timedelta(hours=-14))
# In UTC it would be after the last year.
LAST = datetime.max.replace(tzinfo=WEST)

APPENDS = """
import asyncio, sys
from evalstudio.storage.json_lines import JsonFileStorageProvider

async def main():
    storage = JsonFileStorageProvider(sys.argv[1])
    for number in range(500):
        await storage.save_result({"by": sys.argv[2], "number": number, "text": "x" * (number * 37 % 9000)})

asyncio.run(main())
"""


def test_two_processes_append_at_once_and_nothing_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", APPENDS, str(path), name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for name in ("a", "b"):
        assert [line["number"] for line in lines if line["by"] == name] == list(range(500))
    assert all(len(line["text"]) == line["number"] * 37 % 9000 for line in lines)


async def test_many_tasks_append_at_once(tmp_path: Path) -> None:
    storage = JsonFileStorageProvider(tmp_path / "results.jsonl")
    await asyncio.gather(*(storage.save_result({"number": number}) for number in range(100)))
    assert sorted(result["number"] for result in iter_results(storage.path)) == list(range(100))


async def test_a_torn_last_line_is_set_aside_and_the_next_result_starts_afresh(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "results.jsonl"
    storage = JsonFileStorageProvider(path)
    await storage.save_result({"number": 1})
    with open(path, "ab") as file:
        file.write(b'{"number": 2, "resul')
    torn: list[tuple[int, bytes]] = []
    assert [r["number"] for r in iter_results(path, on_torn=lambda *at: torn.append(at))] == [1]
    await storage.save_result({"number": 3})
    with caplog.at_level(logging.WARNING, "evalstudio"):
        assert [r["number"] for r in iter_results(path)] == [1, 3]
    assert torn == [(2, b'{"number": 2, "resul')]
    assert f"{path}:2" in caplog.text


async def test_a_whole_line_that_lacks_only_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"number": 1}')
    await JsonFileStorageProvider(path).save_result({"number": 2})
    assert [r["number"] for r in iter_results(path)] == [1, 2]


def test_what_is_no_result_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'\n[1]\n5\nnull\n\xff\xfe\n  \n{"number": 1}\r\n')
    torn: list[int] = []
    assert [r["number"] for r in iter_results(path, on_torn=lambda number, _: torn.append(number))] == [1]
    assert torn == [2, 3, 4, 5]


def test_folders_are_made_and_the_file_waits_for_the_first_result(tmp_path: Path) -> None:
    storage = JsonFileStorageProvider(tmp_path / "a" / "b" / "results.jsonl")
    assert storage.path.parent.is_dir()
    assert not storage.path.exists()
    with pytest.raises(ValueError, match="name a file"):
        JsonFileStorageProvider("")


KEPT: list[dict[str, Any]] = [
    {"timestamp": 100, "agentId": "a", "sessionId": "s", "results": [{"criterionName": "tone"}]},
    {"timestamp": 200, "agentId": "b", "sessionId": "s", "results": [{"criterionName": "truth"}]},
    {"timestamp": 300, "agentId": "a", "sessionId": "t", "results": []},
    {"agentId": "a"},
    {"timestamp": "soon", "results": "none"},
]


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"since": 200}, [1, 2]),
        ({"until": 200}, [0, 1]),
        ({"since": 101, "until": 299}, [1]),
        ({"agent_id": "a"}, [0, 2, 3]),
        ({"agent_id": "a", "session_id": "s"}, [0]),
        ({"criterion_name": "truth"}, [1]),
        ({"agent_id": "nobody"}, []),
    ],
)
async def test_results_are_read_back_by_time_agent_session_and_criterion(
    tmp_path: Path, filters: dict[str, Any], places: list[int]
) -> None:
    storage = JsonFileStorageProvider(tmp_path / "results.jsonl")
    for result in KEPT:
        await storage.save_result(result)
    assert list(iter_results(storage.path, **filters)) == [KEPT[place] for place in places]


async def test_a_scored_record_comes_back_as_it_was(tmp_path: Path) -> None:
    storage = JsonFileStorageProvider(tmp_path / "results.jsonl")
    record = {"response": "Grüße 🎌", "agentId": "a", "criteria": [{"name": "ok"}]}
    entry = {"type": "rule-based", "rules": [{"criterionName": "ok", "type": "length", "min": 3}]}
    result = await run_evaluation(record, {"evaluatorConfigs": [entry]}, storage=storage)
    assert list(iter_results(storage.path, criterion_name="ok")) == [json.loads(json.dumps(result.to_json()))]


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


class HasJson:
    def to_json(self) -> dict[str, Any]:
        return {"deep": {1, 2}}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (10**30, str(10**30)),
        ("half \ud800", "half \ufffd"),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        ({1, 2}, [1, 2]),
        ((1, print), [1]),
        (float("inf"), None),
        ({"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}, {"at": "2026-01-02T03:04:05.000Z"}),
        ({"at": datetime(2026, 1, 2), "big": 2**70}, {"at": "2026-01-02T00:00:00.000Z", "big": str(2**70)}),
        ({"at": LAST}, {"at": "9999-12-31 23:59:59.999999-14:00"}),
        ({"at": LAST, "big": 2**70}, {"at": str(LAST), "big": str(2**70)}),
        (HasJson(), {"deep": [1, 2]}),
        ({"here": HasJson(), "half": "\ud800"}, {"here": {"deep": [1, 2]}, "half": "\ufffd"}),
        (Path("/tmp"), "/tmp"),
    ],
)
async def test_an_odd_value_never_costs_the_line(tmp_path: Path, value: Any, kept: Any) -> None:
    storage = JsonFileStorageProvider(tmp_path / "results.jsonl")
    await storage.save_result({"value": value, "whole": True})
    assert next(iter_results(storage.path)) == {"value": kept, "whole": True}


async def test_a_value_that_contains_itself_ends_somewhere(tmp_path: Path) -> None:
    storage = JsonFileStorageProvider(tmp_path / "results.jsonl")
    await storage.save_result({"value": cyclic(), "whole": True})
    assert next(iter_results(storage.path))["whole"] is True


async def test_a_folder_in_the_way_is_an_error_of_the_save(tmp_path: Path) -> None:
    storage = JsonFileStorageProvider(tmp_path / "results")
    storage.path.mkdir()
    entry = {"type": "response-length"}
    result = await run_evaluation({"response": "x"}, {"evaluatorConfigs": [entry]}, storage=storage)
    assert "could not save" in result.run_errors[0]
