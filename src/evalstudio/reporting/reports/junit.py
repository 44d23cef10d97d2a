"""JUnit XML as CI systems read it: a test case per subject, with reasons, metrics and reruns.

The elements are those of Maven's Surefire, whose readers also know reruns: a subject that passed and failed
has a ``flakyFailure`` for each failure if what is required is met, else a ``failure`` and ``rerunFailure``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from ...base.lazy_dataclass import dataclass
from ...base.text import cut
from .model import ReportHead, ReportRun, Transcript
from .words import verdict

_LONGEST = 4_000
_MOST_FAILURES = 20
# XML 1.0 holds no other characters, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class _TestCase:
    """A subject with what is needed of its runs: memory does not grow with what was said."""

    group: str
    name: str
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0
    bad: list[tuple[str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str]])
    """Outcome, run, reason and findings of those that failed or errored."""
    sums: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])

    def add(self, run: ReportRun) -> None:
        self.outcomes[run.outcome] = self.outcomes.get(run.outcome, 0) + 1
        self.seconds += (run.latency_ms or 0.0) / 1000
        if run.bad and len(self.bad) < _MOST_FAILURES:
            findings = "\n".join(f"{one.word} {one.name}: {one.reason}" for one in run.findings)
            self.bad.append((run.outcome, run.id, cut(run.reason, _LONGEST), cut(findings, _LONGEST)))
        for name, value in run.metrics.items():
            total, number = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + value, number + 1

    @property
    def word(self) -> str:
        """failure, error, flaky, skipped or pass."""
        failed, passed = self.outcomes.get("fail", 0), self.outcomes.get("pass", 0)
        if failed:
            return "flaky" if passed else "failure"
        if self.outcomes.get("error", 0):
            return "error"
        return "pass" if passed else "skipped"


class JUnitWriter:
    """Gathers the runs by subject and writes them at the end."""

    transcripts = 0
    every_run = True

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._cases: dict[str, _TestCase] = {}

    def begin(self, head: ReportHead) -> None:
        self._head = head

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        case = self._cases.get(run.label)
        if case is None:
            name = " · ".join(part for part in (run.case, run.persona, run.connector) if part) or run.label
            case = self._cases[run.label] = _TestCase(run.group, name)
        case.add(run)

    def end(self) -> None:
        tolerated = self._head.standing == "met"
        words = [case.word for case in self._cases.values()]
        numbers = {
            "tests": len(words),
            "failures": words.count("failure") + (0 if tolerated else words.count("flaky")),
            "errors": words.count("error"),
            "skipped": words.count("skipped"),
        }
        counts = " ".join(f'{name}="{number}"' for name, number in numbers.items())
        time = _seconds(sum(case.seconds for case in self._cases.values()))
        write = self._output.write
        write('<?xml version="1.0" encoding="UTF-8"?>\n')
        totals = f'tests="{numbers["tests"]}" failures="{numbers["failures"]}" errors="{numbers["errors"]}"'
        write(f"<testsuites {totals} {time}>\n")
        write(f"<testsuite name={_attribute(self._head.title)} {counts} {time}>\n")
        write(_properties(_suite_properties(self._head)))
        for case in self._cases.values():
            for line in _test_case(case, tolerated=tolerated):
                write(line + "\n")
        write("</testsuite>\n</testsuites>\n")


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", text))


def _seconds(seconds: float) -> str:
    return f'time="{seconds:.3f}"'


def _properties(pairs: Sequence[tuple[str, str]]) -> str:
    if not pairs:
        return ""
    lines = "".join(f"<property name={_attribute(name)} value={_attribute(text)}/>\n" for name, text in pairs)
    return f"<properties>\n{lines}</properties>\n"


def _suite_properties(head: ReportHead) -> list[tuple[str, str]]:
    verdicts = [
        (f"requirement: {one.requirement}", f"{one.standing}: {one.evidence}") for one in head.requirements
    ]
    return [("verdict", verdict(head)), *head.facts, *verdicts]


def _test_case(case: _TestCase, *, tolerated: bool) -> Iterator[str]:
    names = f"classname={_attribute(case.group)} name={_attribute(case.name)}"
    yield f"<testcase {names} {_seconds(case.seconds)}>"
    means = [(name, f"{total / number:g}") for name, (total, number) in case.sums.items()]
    if sum(case.outcomes.values()) > 1:
        means += [(f"runs {outcome}", str(number)) for outcome, number in sorted(case.outcomes.items())]
    if properties := _properties(means).rstrip():
        yield properties
    yield from _problems(case, tolerated=tolerated)
    yield "</testcase>"


def _problems(case: _TestCase, *, tolerated: bool) -> Iterator[str]:
    """The first failure or error decides; the others are reruns."""
    if case.word == "skipped":
        yield f"<skipped message={_attribute('unasserted or not run: nothing says whether it passes')}/>"
        return
    flaky = case.word == "flaky" and tolerated
    names = {"fail": "flakyFailure", "error": "flakyError"} if flaky else {}
    failures = sorted(case.bad, key=lambda one: one[0] != "fail")
    for place, (outcome, run_id, reason, findings) in enumerate(failures):
        first = {"fail": "failure", "error": "error"}
        later = {"fail": "rerunFailure", "error": "rerunError"}
        name = names.get(outcome) or (first if place == 0 else later)[outcome]
        message = _attribute(cut(" ".join(reason.split()), 300))
        body = _text(f"run {run_id}: {reason}\n{findings}".rstrip())
        yield f'<{name} message={message} type="{outcome}">{body}</{name}>'
