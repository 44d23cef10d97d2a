"""Results in a folder at an address are used as those of a file are: reports, gates, budgets, another try."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_server import ModelServer, threaded_server
from tests.support.s3_server import S3Server, running_s3
from tests.support.scoring_files import MOODY, CommandResult, Folder, command, rows

from evalstudio.scoring import kept_shards, shard_results
from evalstudio.scoring.datasets import DatasetError
from evalstudio.scoring.shards_here import score_shards_here

SCORE = {"reasoning": "fine", "score": 5}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with pytest.MonkeyPatch.context() as variables, running_s3(variables) as server:
        yield server


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstudio.scoring.sharded.shard_bytes", lambda *_, **__: 600)


@dataclass
class Place:
    """A folder with a dataset and a plan, and an address for results."""

    folder: Folder
    capsys: pytest.CaptureFixture[str]
    address: str

    def run(self, *arguments: str | Path) -> CommandResult:
        return command(self.capsys, *arguments)

    def score(self, *more: str | Path, output: str | Path | None = None) -> CommandResult:
        data, plan = self.folder.path / "records.jsonl", self.folder.path / "plan.json"
        return self.run("score", data, "-c", plan, "--json", "-o", output or self.address, *more)

    @property
    def path(self) -> Path:
        return Path(self.address.removeprefix("file://"))

    def break_some(self, is_broken: bool = True) -> None:
        broken = self.folder.path / "broken"
        broken.touch() if is_broken else broken.unlink()


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    folder = Folder(tmp_path)
    (tmp_path / "moody.py").write_text(MOODY)
    folder.plan({"plugins": ["./moody.py"], "evaluators": [{"type": "moody"}, {"type": "words"}]})
    folder.dataset(rows(40))
    return Place(folder, capsys, f"file://{tmp_path}/results/")


@pytest.fixture(params=["file", "s3"])
def anywhere(request: pytest.FixtureRequest, place: Place) -> Place:
    if request.param == "s3":
        request.getfixturevalue("s3")
        place.address = f"s3://evals/{place.folder.path.name}/"
    return place


def told(done: CommandResult) -> dict[str, Any]:
    return json.loads(done.out)


def alike(report: str) -> dict[str, Any]:
    """A report without where it was made from."""
    return {**json.loads(report), "title": "", "facts": {}}


def test_errors_are_scored_again_and_reported_as_at_a_path(anywhere: Place) -> None:
    place, file = anywhere, anywhere.folder.output
    report = place.folder.path / "report.json"
    seen: list[list[Any]] = []
    for output in (file, place.address):
        place.break_some()
        first = place.score(output=output)
        place.break_some(False)
        gate = ("--require", "maxErrors=0", "--require", "metric=words,percentile=95,max=100")
        again = place.score("--resume", "--retry-errors", *gate, "--report", f"json={report}", output=output)
        assert (told(first)["outcomes"]["error"], told(again)["retried"]) == (4, 4), again.err
        later = place.score("--resume", *gate, output=output)
        assert (told(later)["resumed"], told(later)["outcomes"]["error"]) == (40, 0)
        seen.append([(one.code, told(one)) for one in (first, again, later)])
        seen[-1].append(alike(report.read_text()))
    assert seen[0] == seen[1]


def test_reports_comparisons_and_gates_read_shards_as_one(anywhere: Place) -> None:
    place, file = anywhere, anywhere.folder.output
    place.score(output=file)
    place.score()
    here, there = (place.run("report", where, "-f", "json") for where in (file, place.address))
    assert (there.code, alike(there.out)) == (0, alike(here.out)), there.err
    same = place.run("compare", file, place.address, "--json")
    assert (same.code, told(same)["overall"]["subjects"]) == (0, 40), same.err
    place.folder.plan({"plugins": ["./moody.py"], "evaluators": [{"type": "words"}, {"type": "moody"}]})
    worse = place.folder.path / "worse.jsonl"
    refused = place.score("--require", f"noRegression={place.address}", output=worse)
    assert "was scored by another plan" in refused.out
    place.folder.plan({"plugins": ["./moody.py"], "evaluators": [{"type": "moody"}, {"type": "words"}]})
    place.folder.dataset({**row, "response": "3 3"} for row in rows(40))
    refused = place.score("--require", f"noRegression={place.address}", output=worse)
    assert (refused.code, "regressed" in json.dumps(told(refused)["requirements"])) == (1, True), refused.out


@pytest.mark.usefixtures("s3")
def test_what_holds_no_results_is_told(place: Place) -> None:
    place.path.mkdir()
    for arguments in (("report", place.address), ("compare", place.address, place.address)):
        said = place.run(*arguments)
        assert (said.code, "results/: holds no results" in said.err) == (2, True), said
    said = place.score("--require", "noRegression=s3://key:hidden@nowhere/x/")
    assert (said.code, "hidden" in said.out + said.err) == (3, False), said


def judged_folder(place: Place, server: ModelServer) -> None:
    settings = {"provider": "openai", "apiKey": "k", "baseUrl": server.url}
    tone = {"name": "tone", "description": "It is kind", "scale": "likert5"}
    models = {"models": {"evaluation": "gpt-4o-mini"}}
    plan = {"criteria": [tone], "evaluators": [{"type": "criteria-judge"}], "llmSettings": settings | models}
    place.folder.plan(plan | {"concurrency": 1})


@pytest.mark.parametrize(
    "limit", [("--max-tokens", "1"), ("--max-cost", "0.000001"), ("--max-time", "0.001")]
)
def test_a_budget_ends_it_and_a_resume_goes_on(place: Place, limit: tuple[str, str]) -> None:
    with threaded_server(SCORE) as server:
        judged_folder(place, server)
        ended = place.score(*limit, "--require", "maxErrors=0")
        shown = told(ended)
        assert (ended.code, shown["partial"]) == (3, "budget"), ended.err
        assert 0 < shown["records"] == len(server.requests) < 40
        assert shown["notes"][0].startswith("Ended by its budget: ")
        assert "run the same command with --resume" in ended.err
        assert "Not all records: ended by its budget" in place.run("report", place.address, "-f", "md").out
        assert place.run("compare", place.address, place.address).code == 3
        rest = place.score("--resume")
        assert len(server.requests) == 40, "nothing is judged twice"
    assert (rest.code, told(rest)["partial"], told(rest)["records"]) == (0, None, 40), rest.err
    assert "ended by its budget" not in place.run("report", place.address, "-f", "md").out


def test_a_budget_counts_what_was_scored_behind_a_gap(place: Place) -> None:
    place.score()
    gone, *_ = sorted(place.path.glob("000001-*.jsonl"))
    gone.unlink()
    ended = place.score("--resume", "--max-time", "0.001")
    assert (ended.code, told(ended)["partial"]) == (0, None), "the only shard that was missing is scored"
    for name in ("000001", "000003"):
        next(place.path.glob(f"{name}-*.jsonl")).unlink()
    ended = place.score("--resume", "--max-time", "0.001")
    assert (ended.code, told(ended)["partial"]) == (3, "budget")
    shown = told(place.run("report", place.address, "-f", "json"))
    assert 0 < told(ended)["records"] == shown["counts"]["total"] < 40
    assert told(place.score("--resume"))["records"] == 40


def test_what_is_scored_again_is_within_the_budget(place: Place) -> None:
    replies: list[Any] = ["no"]
    with threaded_server(lambda _: replies[-1]) as server:
        judged_folder(place, server)
        assert told(place.score())["outcomes"]["error"] == 40
        replies.append(SCORE)
        ended = place.score("--resume", "--retry-errors", "--max-tokens", "1")
        assert (ended.code, told(ended)["partial"]) == (3, "budget"), ended.err
        assert 40 > told(ended)["outcomes"]["error"] > 0
        rest = place.score("--resume", "--retry-errors")
    assert told(rest)["outcomes"]["pass"] == 40 > told(rest)["retried"] > 0


class Stopped(BaseException):
    """The command is gone."""


def stopping(where: Any, name: str, after: int, *, before: bool) -> Callable[..., Any]:
    """A function that is the end of the command, before or after it has been called so often."""
    original, calls = getattr(where, name), list[int]()

    def stop(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if before and len(calls) > after:
            raise Stopped
        answer = original(*arguments, **options)
        if len(calls) > after:
            raise Stopped
        return answer

    return stop


STOPS = {
    "before the first new shard is described": (shard_results, "described", 0, True),
    "when the first new shard is described": (shard_results, "described", 0, False),
    "when the second new shard is described": (shard_results, "described", 1, False),
    "before the manifest is written": (kept_shards.KeptShards, "finish", 0, True),
    "while old shards are removed": (kept_shards.AddressFolder, "remove", 1, False),
}


@pytest.mark.parametrize(("where", "name", "after", "before"), STOPS.values(), ids=STOPS.keys())
def test_a_kill_while_errors_are_scored_again_loses_and_doubles_nothing(
    place: Place, where: Any, name: str, after: int, before: bool
) -> None:
    place.break_some()
    place.score()
    place.break_some(False)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(where, name, stopping(where, name, after, before=before))
        place.score("--resume", "--retry-errors")
    # What is there at this moment is whole, whatever it is called.
    report = place.run("report", place.address, "-f", "json")
    assert (report.code, told(report)["counts"]["total"]) == (0, 40), report.err
    mended = place.score("--resume", "--retry-errors")
    assert (told(mended)["records"], told(mended)["outcomes"]["error"]) == (40, 0), mended.err
    lines = [json.loads(line) for file in files(place) for line in file.read_text().splitlines()]
    assert [one["line"] for one in lines] == list(range(1, 41))
    assert len(files(place)) * 2 + 1 == len(list(place.path.iterdir())), "nothing is left behind"


def files(place: Place) -> list[Path]:
    return sorted(place.path.glob("*.jsonl"))


def manifest(place: Place) -> dict[str, Any]:
    return json.loads((place.path / "manifest.json").read_text())


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def description(results: Path) -> Path:
    return results.with_suffix(".json")


def drop_a_result(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[1:]))
    change(description(file), size=file.stat().st_size)


def forget_a_result(file: Path) -> None:
    drop_a_result(file)
    change(description(file), records=json.loads(description(file).read_text())["records"] - 1)


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str | None]] = {
    "a shard is missing": (Path.unlink, "is missing, or not as long as it was", None),
    "a shard is cut off": (
        lambda file: file.write_bytes(file.read_bytes()[:-5]),
        "is missing, or not as long as it was",
        None,
    ),
    "a description is missing": (lambda file: description(file).unlink(), "cannot be read", None),
    "a description is no JSON": (
        lambda file: description(file).write_bytes(b"{"),
        "cannot be read",
        "cannot be read: 000001-",
    ),
    "a failure was made a pass": (
        lambda file: file.write_bytes(file.read_bytes().replace(b'"outcome":"fail"', b'"outcome":"pass"', 1)),
        "is no result",
        'it says "pass"',
    ),
    "a line is no result": (
        lambda file: file.write_bytes(b"x" + file.read_bytes()[1:]),
        "is no result",
        "unexpected character",
    ),
    "a result is gone": (drop_a_result, "there are", "there are"),
    "a result is gone, and its record": (forget_a_result, "", "of 10 records there are 9 results"),
    "a result is gone, and its record left out": (
        lambda file: (forget_a_result(file), change(description(file), unsampled=1)),
        "",
        "of 10 records there are 9 results",
    ),
    "a result with another line": (
        lambda file: file.write_bytes(file.read_bytes().replace(b'"line":11,', b'"line":51,', 1)),
        "line 51 of the dataset does not belong here",
        "line 51 of the dataset does not belong here",
    ),
    "a shard that ends before it begins": (
        lambda file: change(description(file), end=0),
        "it ends before it begins",
        "it ends before it begins",
    ),
    "a pipe in the place of a description": (
        lambda file: (description(file).unlink(), os.mkfifo(description(file))),
        "cannot be read",
        None,
    ),
    "results of another shard": (
        lambda file: change(description(file), results=f"000002{file.name[6:]}"),
        "those of another shard",
        "those of another shard",
    ),
    "results outside of the folder": (
        lambda file: change(description(file), results="../secret.jsonl"),
        "cannot be read",
        "results: ",
    ),
    "numbers that are none": (
        lambda file: change(description(file), records=-3),
        "cannot be read",
        "records: ",
    ),
}


@pytest.mark.parametrize(("damage", "of_report", "of_resume"), DAMAGE.values(), ids=DAMAGE.keys())
def test_shards_that_were_changed_are_told_or_scored_again(
    place: Place, damage: Callable[[Path], object], of_report: str, of_resume: str | None
) -> None:
    expected = told(place.score())
    secret = place.folder.path / "secret.jsonl"
    secret.write_text("mine\n")
    damage(next(file for file in files(place) if file.name.startswith("000001-")))
    report = place.run("report", place.address)
    assert (report.code, of_report in report.err) == (2 if of_report else 0, True), report
    resumed = place.score("--resume")
    if of_resume is None:
        assert (resumed.code, {**told(resumed), "resumed": 0}) == (0, expected), resumed.err
        assert place.run("report", place.address).code == 0
    else:
        assert (resumed.code, of_resume in resumed.err) == (2, True), resumed.err
    assert secret.read_text() == "mine\n"


MANIFESTS: dict[str, tuple[dict[str, Any], bool]] = {
    "another plan": ({"settings": {"plan": "another"}}, False),
    "no settings": ({"settings": {}}, False),
    "names outside of the folder": ({"results": ["../secret.jsonl"]}, True),
    "names that are no text": ({"results": [1]}, True),
    "the same shard twice": ({"results": "twice"}, True),
    "a shard left out": ({"results": "fewer"}, True),
    "cut by something": ({"cut": "words"}, True),
    "cut otherwise": ({"cut": "rowGroups"}, False),
    "cut into nothing": ({"shardBytes": 0}, True),
    "no job": ({"job": None}, True),
    "a list": ({}, True),
}


@pytest.mark.parametrize(("changes", "is_unreadable"), MANIFESTS.values(), ids=MANIFESTS.keys())
def test_manifests_that_were_changed_are_refused(
    place: Place, changes: dict[str, Any], is_unreadable: bool
) -> None:
    place.score()
    (place.folder.path / "secret.jsonl").write_text("mine\n")
    names = manifest(place)["results"]
    lists = {"twice": [names[0], *names], "fewer": [names[0], *names[2:]]}
    if changes:
        known = {
            key: lists[item] if isinstance(item, str) and item in lists else item
            for key, item in changes.items()
        }
        change(place.path / "manifest.json", **known)
    else:
        (place.path / "manifest.json").write_text("[]")
    report, resumed = place.run("report", place.address), place.score("--resume")
    assert (report.code == 2) == is_unreadable, report
    if "results" not in changes or changes["results"] in (["../secret.jsonl"], [1]):
        assert (resumed.code, "cannot be resumed" in resumed.err) == (2, True), resumed.err
    else:
        assert told(resumed)["records"] == 40
    assert (place.folder.path / "secret.jsonl").read_text() == "mine\n"


def test_a_resume_that_is_refused_leaves_all_as_it_was(place: Place) -> None:
    place.score()
    names = sorted(one.name for one in place.path.iterdir())
    place.folder.dataset({**row, "response": "other"} for row in rows(40))
    refused = place.score("--resume")
    assert (refused.code, "another dataset" in refused.err) == (2, True)
    assert (sorted(one.name for one in place.path.iterdir()), manifest(place)["isComplete"]) == (names, True)
    # What is added is not the whole until all of it is.
    place.folder.dataset(rows(90))
    ended = place.score("--resume", "--max-time", "0.001")
    assert (ended.code, manifest(place)["isComplete"]) == (3, False)
    assert told(place.score("--resume"))["records"] == 90


def test_what_others_keep_in_a_folder_is_left_alone(place: Place) -> None:
    place.path.mkdir()
    own = {"manifest.json": '{"name": "my web app"}', "20240101.jsonl": "{}\n"}
    for name, text in own.items():
        (place.path / name).write_text(text)
    refused = place.score()
    assert (refused.code, "holds something, but no results" in refused.err) == (2, True)
    (place.path / "manifest.json").unlink()
    assert place.score().code == 2
    assert (place.path / "20240101.jsonl").read_text() == "{}\n"
    (place.path / "20240101.jsonl").unlink()
    # What a kill leaves of the very first file is no reason to refuse.
    (place.path / ".manifest.json.00ab12cd").write_text("{")
    assert place.score().code == 0
    (place.path / "notes.jsonl").write_text("mine\n")
    for more in ((), ("--resume",)):
        assert told(place.score(*more))["records"] == 40
        assert (place.path / "notes.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize("resume", [False, True], ids=["anew", "resumed"])
@pytest.mark.parametrize(
    "moment", ["before the cut", "before a shard", "before its description", "before the manifest"]
)
def test_the_first_of_two_commands_ends_and_the_second_has_all_results(
    place: Place, moment: str, resume: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replace(place.folder.job(), output=None, output_address=place.address)
    expected, plain = told(place.score(output=place.folder.output)), place.folder.score().to_json()
    where, name, call = {
        "before a shard": (shard_results.ShardWriter, "__init__", 3),
        "before its description": (shard_results, "check_start", 3),
        "before the cut": (kept_shards, "check_start", 1),
        "before the manifest": (kept_shards, "check_start", 3),
    }[moment]
    original, calls, others = getattr(where, name), list[int](), list[dict[str, Any]]()

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            with ThreadPoolExecutor(1) as apart:
                second = apart.submit(score_shards_here, replace(job, resume=resume))
                others.append(second.result()[0].to_json())
        return original(*arguments)

    monkeypatch.setattr(where, name, interrupted)
    with pytest.raises(DatasetError, match="another command has begun to write there"):
        score_shards_here(job)
    assert [{**one, "resumed": 0} for one in others] == [plain]
    later = told(place.score("--resume"))
    assert ({**later, "resumed": 0}, later["resumed"]) == (expected, 40)
