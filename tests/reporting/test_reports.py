"""The reports: all from one model, all safe whatever an agent said."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from tests.support.plugin_files import REPOSITORY
from tests.support.references import Reference

from evalstudio.base.problems import InvalidInput
from evalstudio.project.entities import Counts
from evalstudio.reporting.intervals import rate_interval
from evalstudio.reporting.reports import Format, ReportHead, ReportRun, Transcript, write_reports, writer_for
from evalstudio.reporting.reports.data import cell
from evalstudio.reporting.reports.markdown import MOST_CHARACTERS, escaped
from evalstudio.reporting.reports.model import ReportFinding, SubjectLine
from evalstudio.reporting.reports.recorded import recorded_source
from evalstudio.reporting.requirements import RequirementResult

xmlschema: Any = Reference("xmlschema")
HOSTILE = "</td><script>alert(1)</script> ]]> \x00\x1b[31m \ud800 | `x` @team #1 https://evil.example\n=1+1"


@dataclass
class Source:
    """A report of runs that are given."""

    given: list[ReportRun]
    head: ReportHead
    asked: list[str] = field(default_factory=list[str])
    read: int = 0

    async def runs(self) -> AsyncIterator[ReportRun]:
        for run in self.given:
            self.read += 1
            yield run

    async def transcript(self, run: ReportRun) -> Transcript:
        self.asked.append(run.id)
        return [("user", "hello"), ("assistant", HOSTILE)]


def source(runs: list[ReportRun], *, standing: str = "missed", **more: object) -> Source:
    lines: dict[str, SubjectLine] = {}
    for run in runs:
        line = lines.setdefault(run.label, SubjectLine(run.label, run.group))
        match run.outcome:
            case "pass":
                line.passed += 1
            case "fail":
                line.failed += 1
            case "error":
                line.errored += 1
            case _:
                line.left += 1
        line.reason = line.reason or (run.reason if run.outcome != "pass" else "")
    subjects = list(lines.values())
    counts = Counts(
        total=len(runs),
        passed=sum(one.passed for one in subjects),
        failed=sum(one.failed for one in subjects),
        errored=sum(one.errored for one in subjects),
        cancelled=sum(one.left for one in subjects),
    )
    head = ReportHead(
        title=str(more.pop("title", "nightly")),
        noun="runs",
        standing=standing,  # pyright: ignore[reportArgumentType]
        counts=counts,
        rate=rate_interval([(one.passed, one.scored) for one in subjects]),
        subjects=subjects,
        **more,  # pyright: ignore[reportArgumentType]
    )
    return Source(runs, head)


def made(number: int, outcome: str, label: str = "refund", reason: str = "it broke") -> ReportRun:
    findings = [ReportFinding("Regex", outcome, reason, 1)] if outcome != "pass" else []
    return ReportRun(
        id=f"run{number}",
        label=f"{label} · agent",
        group=label,
        outcome=outcome,
        repetition=number,
        connector="agent",
        reason=reason if outcome != "pass" else "",
        latency_ms=100.0 * number,
        metrics={"words": 3.0 + number},
        findings=findings,
    )


def written(kind: Format, report: Source) -> str:
    output = io.StringIO()
    asyncio.run(write_reports(report, [writer_for(kind, output)]))
    return output.getvalue()


@pytest.mark.parametrize("kind", ["terminal", "json", "jsonl", "csv", "md", "junit", "html", "github"])
def test_hostile_text_is_only_text_in_every_format(kind: Format) -> None:
    report = source([made(1, "fail", label=HOSTILE, reason=HOSTILE)], title=HOSTILE)
    text = written(kind, report)
    assert "refund" in text or "alert(1)" in text
    if kind in ("html", "md", "junit"):
        assert "<script" not in text
    if kind not in ("json", "jsonl"):
        assert "\x1b" not in text or kind == "csv"
    if kind == "github":
        assert all(line.startswith("::") for line in text.splitlines())


def check_against_the_schema(text: str) -> None:
    xmlschema.XMLSchema(str(REPOSITORY / "tests/support/junit.xsd")).validate(text)


def test_junit_is_read_by_its_readers_and_fits_the_schema() -> None:
    runs = [
        made(1, "pass", "steady"),
        made(1, "pass", "moody"),
        made(2, "fail", "moody", HOSTILE),
        made(1, "fail", "broken", "wrong amount"),
        made(2, "fail", "broken", "wrong again"),
        made(1, "error", "away", "no answer"),
        made(1, "cancelled", "later"),
    ]
    report = source(runs)
    text = written("junit", report)
    check_against_the_schema(text)
    [suite] = JUnitXml.fromstring(text.encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 2, 1, 1)
    cases = {case.classname: case for case in suite}
    assert cases["steady"].is_passed
    assert cases["broken"].result[0].message == "wrong amount"
    assert "rerunFailure" in text
    assert cases["later"].is_skipped
    assert '<property name="words" value="4"/>' in text


def test_what_is_flaky_but_tolerated_is_a_flaky_failure_of_a_passing_test() -> None:
    report = source([made(1, "pass", "moody"), made(2, "fail", "moody")], standing="met")
    text = written("junit", report)
    check_against_the_schema(text)
    assert "<flakyFailure" in text
    assert "<failure" not in text
    [suite] = JUnitXml.fromstring(text.encode())
    assert (suite.tests, suite.failures) == (1, 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+49 30", "'+49 30"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("  =1", "'  =1"),
        (-1.5, "-1.5"),
        (None, ""),
        ("plain", "plain"),
    ],
)
def test_no_cell_is_a_formula(value: object, expected: str) -> None:
    assert cell(value) == expected


def test_csv_and_json_lines_have_a_row_per_run() -> None:
    report = source([made(1, "pass"), made(2, "fail", reason="=cmd()")])
    rows = list(csv.DictReader(io.StringIO(written("csv", report))))
    assert [row["outcome"] for row in rows] == ["pass", "fail"]
    assert rows[1]["reason"] == "'=cmd()"
    assert json.loads(rows[0]["metrics"]) == {"words": 4.0}
    lines = [json.loads(line) for line in written("jsonl", report).splitlines()]
    assert [line["id"] for line in lines] == ["run1", "run2"]
    whole = json.loads(written("json", report))
    assert whole["runs"] == lines
    assert whole["counts"]["failed"] == 1


def test_a_comment_tells_what_regressed_first_and_stays_short() -> None:
    missed = RequirementResult(
        requirement="noRegression=main", standing="missed", evidence="worse", regressed=["b-dropped · agent"]
    )
    runs = [made(1, "fail", f"a{number}", "x" * 5000) for number in range(3000)]
    report = source([*runs, made(1, "fail", "b-dropped")], requirements=[missed])
    text = written("md", report)
    assert len(text) <= MOST_CHARACTERS
    assert text.startswith("### ❌ nightly: 1 of 1 requirement missed")
    assert text.index("**Regressed** (1)") < text.index("b-dropped") < text.index("**Failed** (3,000)")
    assert "and 2,980 more" in text


def test_markdown_of_others_is_neither_markup_nor_mention() -> None:
    assert escaped("<b>@team</b> [x](http://y) #3 `a|b`\n# c") == (
        "&lt;b&gt;@\u200bteam&lt;/b&gt; \\[x\\](http://\u200by) #\u200b3 \\`a\\|b\\` #\u200b c"
    )


@pytest.mark.parametrize(
    ("kind", "failures", "read"),
    [
        ("md", 150, 0),
        ("terminal", 150, 0),
        ("html", 150, 101),
        ("html", 0, 0),
        ("html", 3, 4),
        ("csv", 0, 301),
    ],
)
def test_runs_are_read_as_far_as_a_report_shows_them(kind: Format, failures: int, read: int) -> None:
    failed = [made(number, "fail") for number in range(failures)]
    report = source([made(0, "pass"), *failed, *(made(number, "pass") for number in range(300))])
    written(kind, report)
    assert report.read == read


def test_markdown_names_what_regressed_before_the_requirements_and_what_asserted_nothing() -> None:
    missed = RequirementResult(
        requirement="noRegression=main", standing="missed", evidence="worse", regressed=["refund · agent"]
    )
    report = source([made(1, "fail")], requirements=[missed])
    report.head.subjects.append(SubjectLine("quiet · agent", "quiet", unasserted=1))
    text = written("md", report)
    assert text.index("**Regressed** (1)") < text.index("| noRegression=main |")
    assert "**Unasserted** (1)\n\n- **quiet · agent**" in text


def test_html_shows_what_was_said_in_the_first_failures_only() -> None:
    runs = [made(number, "fail", f"s{number}") for number in range(150)]
    report = source(runs)
    text = written("html", report)
    assert len(report.asked) == 100
    assert "and 50 more that did not pass" in text
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "").replace("https://evil.example", "")


def test_what_is_no_results_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(InvalidInput, match=r"notes\.txt:1.*no result of evalstudio score"):
        recorded_source(path)
    path.write_text("")
    with pytest.raises(InvalidInput, match="holds no results"):
        recorded_source(path)
