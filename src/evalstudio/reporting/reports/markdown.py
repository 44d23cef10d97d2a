"""Markdown made for a comment on a pull request: the verdict, what regressed or failed, then the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import IO

from ...base.text import cut, excerpt, measure, percent, printable
from ..requirements import worst_first
from ..spending import spending_lines
from .model import ReportHead, ReportRun, SubjectLine, Transcript
from .words import counts_text, rate_text, verdict

MOST_CHARACTERS = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
_MOST_SUBJECTS = 20
_MOST_FLAKY = 10
_LONGEST_REASON = 300
# What Markdown is made of; the HTML inside it is written as entities.
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_LINKING = re.compile(r"(@|#|://|www)")
_SYMBOLS = {"met": "✅", "missed": "❌", "undecided": "⚪"}


class MarkdownWriter:
    """All is in the head: single runs are not listed."""

    transcripts = 0
    every_run = False

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def begin(self, head: ReportHead) -> None:
        self._output.write(markdown(head))

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        pass

    def end(self) -> None:
        pass


def escaped(text: str, most: int = _LONGEST_REASON) -> str:
    """Text of others on one line, that cannot become markup, a link or a mention.

    Links and mentions are broken by an invisible character: a backslash does not stop them.
    """
    line = printable(excerpt(text, most), kept="")
    return _LINKING.sub("\\1\u200b", _SPECIAL.sub(r"\\\1", escape(line, quote=False)))


def markdown(head: ReportHead) -> str:
    """The whole report, cut between two lines where it would be too long."""
    lines: list[str] = []
    length = 0
    for line in _lines(head):
        length += len(line) + 1
        if length > MOST_CHARACTERS:
            lines.append("\n_The rest is left out: a comment may not be longer. See the HTML report._")
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def _lines(head: ReportHead) -> Iterator[str]:
    yield f"### {_SYMBOLS[head.standing]} {escaped(head.title)}: {verdict(head)}"
    yield ""
    yield f"{counts_text(head.counts, head.noun)}. Pass rate {rate_text(head)}."
    for note in head.notes:
        yield f"\n**{escaped(note)}**"
    bad = sorted((one for one in head.subjects if one.word != "pass"), key=lambda one: one.rank)
    regressed = set(head.regressed)
    dropped = [one for one in bad if one.label in regressed]
    rest = [one for one in bad if one.label not in regressed]
    yield from _listed("Regressed", dropped, _MOST_SUBJECTS)
    yield from _requirements(head)
    yield from _listed("Failed", [one for one in rest if one.word == "fail"], _MOST_SUBJECTS)
    yield from _listed("Errored", [one for one in rest if one.word == "error"], _MOST_SUBJECTS)
    yield from _listed("Flaky", [one for one in rest if one.word == "flaky"], _MOST_FLAKY)
    yield from _listed("Not run", [one for one in rest if one.word == "not run"], _MOST_FLAKY)
    yield from _listed("Unasserted", [one for one in rest if one.word == "unasserted"], _MOST_FLAKY)
    yield from _numbers(head)


def _requirements(head: ReportHead) -> Iterator[str]:
    if not head.requirements:
        return
    yield "\n| | Requirement | Evidence |"
    yield "|---|---|---|"
    for one in worst_first(head.requirements):
        symbol = f"{_SYMBOLS[one.standing]}&nbsp;{one.standing}"
        yield f"| {symbol} | {escaped(one.sentence or one.requirement)} | {escaped(one.evidence, 500)} |"


def _listed(title: str, subjects: Sequence[SubjectLine], most: int) -> Iterator[str]:
    if not subjects:
        return
    yield f"\n**{title}** ({len(subjects):,})"
    yield ""
    for one in subjects[:most]:
        often = "" if one.scored < 2 else f" ({one.passed:,} of {one.scored:,} passed)"
        reason = f": {escaped(one.reason)}" if one.reason else ""
        yield f"- **{escaped(one.label, 150)}**{often}{reason}"
    if len(subjects) > most:
        yield f"- and {len(subjects) - most:,} more"


def _numbers(head: ReportHead) -> Iterator[str]:
    yield "\n<details><summary>Numbers</summary>\n"
    if head.measures:
        yield "| Measure | Mean | 95% interval | n |"
        yield "|---|--:|--:|--:|"
        for one in head.measures[:50]:
            mean = measure(one.mean.estimate)
            ends = f"{measure(one.mean.low)} to {measure(one.mean.high)}"
            yield f"| {escaped(one.name)} | {mean} | {ends} | {one.runs:,} |"
        yield ""
    for line in spending_lines(head.usage, head.noun):
        yield f"- {escaped(line)}"
    for name, value in head.facts:
        yield f"- {escaped(name)}: {escaped(cut(value, 200))}"
    if head.rate.estimate is not None:
        yield f"- 95% interval of the pass rate: {percent(head.rate.low)} to {percent(head.rate.high)}"
    yield "\n</details>"
