"""Charts as inline SVG: outcomes, pass rates with intervals, latencies. Colours come from the page's CSS."""

from __future__ import annotations

from html import escape

from ...base.text import cut, percent, percents
from .model import BINS, ReportHead, latency_edge

_WIDTH = 640
_ROW = 22
_MOST_ROWS = 30
_LABEL_WIDTH = 220


def _svg(height: int, title: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'width="100%" style="max-width:{_WIDTH}px"><title>{escape(title)}</title>{body}</svg>'
    )


def outcomes_chart(head: ReportHead) -> str:
    """One bar, divided by what the runs came to."""
    counts = head.counts
    parts = (
        ("passed", counts.passed),
        ("failed", counts.failed),
        ("errored", counts.errored),
        ("unasserted", counts.unasserted),
        ("left", counts.left),
    )
    total, place, body = max(counts.total, 1), 0.0, ""
    tips: list[str] = []
    for name, number in parts:
        width = number / total * _WIDTH
        if number:
            tips.append(f"{number:,} {'not run' if name == 'left' else name}")
            body += (
                f'<rect class="{name}" x="{place:.2f}" y="0" width="{width:.2f}" height="24">'
                f"<title>{tips[-1]}</title></rect>"
            )
        place += width
    return _svg(24, f"{counts.total:,} {head.noun}: {', '.join(tips)}", body)


def rates_chart(head: ReportHead) -> str:
    """Pass rates by scenario with their 95% intervals, the lowest first."""
    known = sorted(
        (rate.estimate, rate.low, rate.high, group) for group, rate in head.rates if rate.estimate is not None
    )
    if not known:
        return ""
    body, span = "", _WIDTH - _LABEL_WIDTH - 60
    for row, (estimate, low, high, group) in enumerate(known[:_MOST_ROWS]):
        y = row * _ROW + _ROW / 2
        left, right = _LABEL_WIDTH + low * span, _LABEL_WIDTH + high * span
        body += (
            f'<text x="{_LABEL_WIDTH - 10}" y="{y + 4}" text-anchor="end">{escape(cut(group, 32))}</text>'
            f'<line class="axis" x1="{_LABEL_WIDTH}" y1="{y}" x2="{_LABEL_WIDTH + span}" y2="{y}"/>'
            f'<line class="interval" x1="{left:.1f}" y1="{y}" x2="{right:.1f}" y2="{y}"/>'
            f'<circle class="point" cx="{_LABEL_WIDTH + estimate * span:.1f}" cy="{y}" r="5">'
            f"<title>{escape(group)}: {percent(estimate)} ({percents(low, high)})</title></circle>"
            f'<text x="{_WIDTH - 50}" y="{y + 4}">{percent(estimate)}</text>'
        )
    chart = _svg(_ROW * min(len(known), _MOST_ROWS), "Pass rates with 95% intervals, the lowest first", body)
    more = len(known) - _MOST_ROWS
    return chart if more <= 0 else f"{chart}<p>and {more:,} with a higher rate</p>"


def latency_chart(head: ReportHead) -> str:
    """How long runs took, on a logarithmic scale."""
    highest = max(head.latencies)
    if not highest:
        return ""
    first = next(place for place, number in enumerate(head.latencies) if number)
    last = BINS - next(place for place, number in enumerate(reversed(head.latencies)) if number)
    shown = range(max(first - 1, 0), min(last + 1, BINS))
    width, height, body = _WIDTH / len(shown), 120, ""
    for place, index in enumerate(shown):
        number, tall = head.latencies[index], head.latencies[index] / highest * (height - 24)
        tip = f"{number:,} from {_edge(index)} to {_edge(index + 1)}"
        body += (
            f'<rect class="bar" x="{place * width + 1:.1f}" y="{height - 20 - tall:.1f}" '
            f'width="{width - 2:.1f}" height="{tall:.1f}"><title>{tip}</title></rect>'
        )
        if index % 2 == 0:
            body += f'<text x="{place * width:.1f}" y="{height - 4}" class="small">{_edge(index)}</text>'
    return _svg(height, f"Latency of {sum(head.latencies):,} {head.noun}, logarithmic", body)


def _edge(index: int) -> str:
    milliseconds = latency_edge(index)
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.3g} s"
