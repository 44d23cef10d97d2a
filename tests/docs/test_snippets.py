"""Every snippet of the README and of the docs runs, and prints what the page says it prints."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import warm_command_folder
from tests.support.model_server import Recorded, threaded_server
from tests.support.plugin_files import REPOSITORY
from tests.support.snippets import Block, Page, blocks_of, matches, quiet_environment, steps_of

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_FENCED = re.compile(r"^(```+).*?^\1", re.MULTILINE | re.DOTALL)


def judge(request: Recorded) -> dict[str, Any]:
    """Answers the way a judge would: the same fair mark for everybody, on whatever scale is asked for."""
    schema = request.body["response_format"]["json_schema"]["schema"]
    return _answer(schema, schema)


def _answer(root: dict[str, Any], schema: dict[str, Any]) -> Any:
    if "anyOf" in schema:
        return _answer(root, schema["anyOf"][0])
    if "$ref" in schema:
        return _answer(root, root["$defs"][schema["$ref"].rpartition("/")[2]])
    if "score" in schema["properties"]:
        score = schema["properties"]["score"]
        mark = (
            True
            if score["type"] == "boolean"
            else score["maximum"] - 1
            if "maximum" in score
            else score["enum"][0]
        )
        return {"reasoning": "Clear and correct.", "score": mark}
    return {name: _answer(root, part) for name, part in schema["properties"].items()}


@pytest.fixture(scope="module")
def judge_url() -> Generator[str]:
    with threaded_server(judge) as server:
        yield server.url


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_the_snippets_run(
    path: Path, tmp_path: Path, judge_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if "KEY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JUDGE_URL", judge_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    commands = f"{warm_command_folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    page = Page(tmp_path, quiet_environment(PATH=commands, JUDGE_URL=judge_url))
    try:
        page.run(blocks_of(path.read_text(encoding="utf-8")), _name(path))
    finally:
        _forget_modules_of(tmp_path)


def _forget_modules_of(folder: Path) -> None:
    """The next page may have a file of the same name."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_every_link_leads_somewhere(path: Path) -> None:
    text = _FENCED.sub("", path.read_text(encoding="utf-8"))
    for target in (found["target"] for found in _LINK.finditer(text)):
        if target.startswith(("http://", "https://")):
            continue
        file, _, heading = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        assert place.exists(), f"{_name(path)} links to {target}"
        if heading:
            assert heading in _headings(place), f"{_name(path)} links to {target}"


def _headings(path: Path) -> set[str]:
    """The anchors a page's headings get on the usual hosts."""
    lines = _FENCED.sub("", path.read_text(encoding="utf-8")).splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def test_the_readme_stays_short() -> None:
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) < 200


def test_every_page_of_the_docs_can_be_reached_from_the_map() -> None:
    reached: set[Path] = set()
    waiting = [REPOSITORY / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for found in _LINK.finditer(page.read_text(encoding="utf-8")):
            place = (page.parent / found["target"].partition("#")[0]).resolve()
            if place.suffix == ".md" and place not in reached and place.is_file():
                waiting.append(place)
    assert set((REPOSITORY / "docs").rglob("*.md")) <= reached


class TestTheRunner:
    """What checks the pages is checked too: a page that lies must not pass."""

    def run(self, folder: Path, markdown: str) -> None:
        Page(folder, quiet_environment(PATH=os.environ["PATH"])).run(blocks_of(markdown), "page.md")

    def test_blocks_know_their_language_line_and_file(self) -> None:
        page = "# Title\n\n<!-- file: a/b.py -->\n\n```python\nx = 1\n```\n\nText.\n\n```json\n{}\n```\n"
        assert blocks_of(page) == [Block("python", "x = 1\n", 5, "a/b.py"), Block("json", "{}\n", 11)]

    def test_a_block_inside_a_longer_fence_is_text(self) -> None:
        (block,) = blocks_of("````text\n```python\nraise\n```\n````\n")
        assert block.text == "```python\nraise\n```\n"

    def test_a_block_inside_a_list_is_a_block(self) -> None:
        assert blocks_of("1. First:\n\n   ```python\n   if x:\n       y()\n   ```\n") == [
            Block("python", "if x:\n    y()\n", 3)
        ]

    def test_a_block_that_is_never_closed_is_refused(self) -> None:
        with pytest.raises(AssertionError, match="line 1 is never closed"):
            blocks_of("```python\nx = 1\n")

    def test_python_blocks_share_names_and_may_await(self, tmp_path: Path) -> None:
        page = (
            "```python\nimport asyncio\nx = 2\n```\n```python\nawait asyncio.sleep(0)\nprint(x)\n#> 2\n```\n"
        )
        self.run(tmp_path, page)

    @pytest.mark.parametrize(
        ("page", "complaint"),
        [
            ("```python\nprint(1)\n#> 2\n```\n", "page.md:1 printed:\n1"),
            ("```python\nassert 1 > 2, 'no'\n```\n", "no"),
            ("```console\n$ echo one\ntwo\n```\n", "echo one\none"),
            ("```console\n$ false\n```\n", "false ended with 1"),
            ("```console\necho one\n```\n", "no line starts with"),
            ("```ruby\n1\n```\n", "what is a 'ruby' block"),
        ],
    )
    def test_a_page_that_lies_fails(self, tmp_path: Path, page: str, complaint: str) -> None:
        with pytest.raises(AssertionError, match=complaint):
            self.run(tmp_path, page)

    @pytest.mark.parametrize("page", ["```json\n{,}\n```\n", "<!-- file: x.json -->\n```json\n{,}\n```\n"])
    def test_data_must_parse(self, tmp_path: Path, page: str) -> None:
        with pytest.raises(ValueError, match="property name"):
            self.run(tmp_path, page)

    def test_files_are_there_for_the_commands_after_them(self, tmp_path: Path) -> None:
        page = (
            "<!-- file: in/a.json -->\n```json\n[1]\n```\n```console\n$ cat in/a.json\n[1]\n"
            "$ cat in/nope\n...\n$ echo $?\n1\n```\n"
        )
        self.run(tmp_path, page)

    @pytest.mark.parametrize(
        ("printed", "wanted", "same"),
        [
            ([], [], True),
            (["a  "], ["a"], True),
            (["a"], [], False),
            (["a", "b", "c"], ["a", "...", "c"], True),
            (["a", "c"], ["a", "...", "c"], True),
            (["a", "b"], ["...", "a"], False),
            (["a", "b"], ["..."], True),
            ([], ["a"], False),
        ],
    )
    def test_three_dots_stand_for_any_lines(self, printed: list[str], wanted: list[str], same: bool) -> None:
        assert matches(printed, wanted) is same

    def test_a_long_command_may_go_on_in_the_next_line(self) -> None:
        assert list(steps_of("$ echo \\\n  a\na\n")) == [("echo    a", ["a"])]
