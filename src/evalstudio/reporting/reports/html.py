"""One HTML file that needs nothing else: no script, no network, charts as SVG, transcripts of what failed.

What agents, judges and users said is escaped, and the page's policy forbids scripts and requests besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import IO

from ...base.text import cut, measure, printable
from ..spending import cost_text, tokens_text
from .charts import latency_chart, outcomes_chart, rates_chart
from .model import ReportHead, ReportRun, SubjectLine, Transcript
from .words import counts_text, rate_text, verdict

MOST_TRANSCRIPTS = 100
_MOST_SUBJECTS = 1_000
_LONGEST_TEXT = 4_000
_MOST_MESSAGES = 100
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root{color-scheme:light dark;--text:#1a1d21;--dim:#5c636b;--page:#fff;--box:#f4f5f7;--line:#d9dce0;
--pass:#1f7a3d;--fail:#b3261e;--error:#8a3fa0;--open:#8a6100;--left:#8b929a;--accent:#2459b3}
@media(prefers-color-scheme:dark){:root{--text:#e6e8eb;--dim:#a3abb5;--page:#15181c;--box:#1f2429;
--line:#383f47;--pass:#56c07a;--fail:#ff8a80;--error:#d59be8;--open:#e0b45c;--left:#7d868f;--accent:#86b1ff}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1000px;padding:24px;background:var(--page);
color:var(--text);font:15px/1.5 system-ui,sans-serif}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;
margin:32px 0 8px}table{border-collapse:collapse;width:100%}td{max-width:640px}
th,td{text-align:left;vertical-align:top;
padding:5px 10px 5px 0;border-bottom:1px solid var(--line);overflow-wrap:break-word}th{color:var(--dim);
font-weight:600}td.number,th.number{text-align:right;white-space:nowrap}pre{white-space:pre-wrap;
overflow-wrap:anywhere;margin:0;font:13px/1.45 ui-monospace,monospace}details{border:1px solid var(--line);
border-radius:6px;margin:8px 0;padding:8px 12px;background:var(--box)}summary{cursor:pointer;
overflow-wrap:anywhere}.dim{color:var(--dim)}.word{font-weight:600;white-space:nowrap}
.pass,.met{color:var(--pass)}
.fail,.missed{color:var(--fail)}.error{color:var(--error)}.flaky,.unasserted,.undecided{color:var(--open)}
.message{display:grid;grid-template-columns:90px 1fr;gap:8px;padding:4px 0}.note{border-left:4px solid
var(--open);padding:4px 12px;background:var(--box)}svg text{fill:var(--text);font:12px system-ui,sans-serif}
svg .small{font-size:10px;fill:var(--dim)}.passed{fill:var(--pass)}.failed{fill:var(--fail)}
.errored{fill:var(--error)}rect.unasserted{fill:var(--open)}.left{fill:var(--left)}.bar{fill:var(--accent)}
.point{fill:var(--accent)}.interval{stroke:var(--accent);stroke-width:3}.axis{stroke:var(--line)}
"""


class HtmlWriter:
    """Writes the numbers, then each bad run as it comes, then the table of subjects."""

    transcripts = MOST_TRANSCRIPTS
    every_run = False

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._bad = 0

    def begin(self, head: ReportHead) -> None:
        self._head = head
        for part in _opening(head):
            self._output.write(part + "\n")

    def add(self, run: ReportRun, transcript: Transcript | None) -> None:
        if not run.bad:
            return
        self._bad += 1
        if self._bad == 1:
            self._output.write("<h2>What did not pass</h2>\n")
        if self._bad <= MOST_TRANSCRIPTS:
            self._output.write(_bad_run(run, transcript) + "\n")

    def end(self) -> None:
        left = self._head.counts.failed + self._head.counts.errored - MOST_TRANSCRIPTS
        if left > 0:
            more = f"and {left:,} more that did not pass; the other formats list all"
            self._output.write(f'<p class="dim">{more}</p>\n')
        for part in (*_subjects(self._head), *_numbers(self._head)):
            self._output.write(part + "\n")
        self._output.write("</main></body></html>\n")


def _text(text: str, most: int = _LONGEST_TEXT) -> str:
    """Text of others: cut, without control characters, escaped."""
    return escape(printable(cut(text, most)))


def _word(word: str) -> str:
    return f'<span class="word {word.replace(" ", "-")}">{word}</span>'


def _opening(head: ReportHead) -> Iterator[str]:
    title = _text(head.title, 200)
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}: {verdict(head)}</title><style>{_STYLE}</style></head><body><main>"
    )
    yield f'<h1>{title}: <span class="{head.standing}">{verdict(head)}</span></h1>'
    yield f"<p>{counts_text(head.counts, head.noun)}. Pass rate {rate_text(head)}.</p>"
    yield outcomes_chart(head)
    for note in head.notes:
        yield f'<p class="note">{_text(note)}</p>'
    if head.requirements:
        yield "<h2>Requirements</h2>"
        rows = (
            (_word(one.standing), _text(one.sentence or one.requirement), _text(one.evidence))
            for one in head.requirements
        )
        yield _table(("", "Requirement", "Evidence"), rows)
    if head.regressed:
        yield "<h2>Regressed</h2><ul>"
        yield "".join(f"<li>{_text(label, 300)}</li>" for label in head.regressed[:_MOST_SUBJECTS]) + "</ul>"
    if chart := rates_chart(head):
        yield f"<h2>Pass rates by {'group' if head.noun == 'records' else 'scenario'}</h2>{chart}"
    if chart := latency_chart(head):
        yield f"<h2>Latency</h2>{chart}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are markup already."""
    head = "".join(f"<th>{column}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _numbers(head: ReportHead) -> Iterator[str]:
    if head.measures:
        yield "<h2>Measured</h2>"
        rows = (
            (
                _text(one.name, 200),
                measure(one.mean.estimate),
                f"{measure(one.mean.low)} to {measure(one.mean.high)}",
                f"{one.runs:,}",
            )
            for one in head.measures
        )
        yield _table(("Measure", "Mean", "95% interval", "n"), rows)
    if head.usage:
        yield "<h2>Tokens and cost</h2>"
        rows = ((one.role, tokens_text(one, head.noun), cost_text(one, head.noun)) for one in head.usage)
        yield _table(("Role", "Tokens", "Cost"), rows)
    if head.facts:
        facts = ((_text(name, 100), _text(value, 500)) for name, value in head.facts)
        yield f"<h2>About</h2>{_table(('', ''), facts)}"


def _bad_run(run: ReportRun, transcript: Transcript | None) -> str:
    again = f", repetition {run.repetition}" if run.repetition > 1 else ""
    heading = f"{_word(run.outcome)} {_text(run.label, 300)}{again}"
    reason = f'<div class="dim">{_text(run.reason, 500)}</div>' if run.reason else ""
    findings = "".join(
        f"<tr><td>{_word(one.word)}</td><td>{_text(one.name, 200)}</td>"
        f"<td>{'' if one.turn is None else f'turn {one.turn}'}</td><td>{_text(one.reason, 1000)}</td></tr>"
        for one in run.findings
    )
    table = f"<table><tbody>{findings}</tbody></table>" if findings else ""
    return (
        f"<details><summary>{heading}{reason}</summary>{table}{_messages(transcript)}"
        f'<p class="dim">run {_text(run.id, 100)}</p></details>'
    )


def _messages(transcript: Transcript | None) -> str:
    if not transcript:
        return '<p class="dim">Nothing was said.</p>' if transcript is not None else ""
    lines = "".join(
        f'<div class="message"><span class="dim">{_text(role, 40)}</span><pre>{_text(text)}</pre></div>'
        for role, text in transcript[:_MOST_MESSAGES]
    )
    more = len(transcript) - _MOST_MESSAGES
    return lines if more <= 0 else f'{lines}<p class="dim">and {more:,} more messages</p>'


def _subjects(head: ReportHead) -> Iterator[str]:
    """The table, in parts: it may be long."""
    subjects = sorted(head.subjects, key=lambda one: one.rank)
    yield f"<h2>{'Records that did not pass' if head.noun == 'records' else 'Subjects'}</h2>"
    columns = ("Result", "Subject", "Passed", "Failed", "Errored", "Not run")
    heads = "".join(
        f"<th{' class=number' if place > 1 else ''}>{one}</th>" for place, one in enumerate(columns)
    )
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for one in subjects[:_MOST_SUBJECTS]:
        yield _subject_row(one)
    yield "</tbody></table>"
    if len(subjects) > _MOST_SUBJECTS:
        more = f"and {len(subjects) - _MOST_SUBJECTS:,} more, the worst are above; the other formats list all"
        yield f'<p class="dim">{more}</p>'


def _subject_row(one: SubjectLine) -> str:
    numbers = (one.passed, one.failed, one.errored, one.left)
    cells = "".join(f'<td class="number">{number:,}</td>' for number in numbers)
    return f"<tr><td>{_word(one.word)}</td><td>{_text(one.label, 300)}</td>{cells}</tr>"
