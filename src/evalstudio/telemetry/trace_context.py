"""W3C trace context: reading what an agent answers, and ids that every process comes to by itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from ..base.lazy_dataclass import dataclass

_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
# The names under which a header or the metadata of an answer tells the agent's own span.
NAMES = ("traceresponse", "traceparent")


@dataclass(frozen=True, slots=True)
class SpanIds:
    """One span of one trace."""

    trace_id: int
    span_id: int
    sampled: bool = True

    def header(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


def read_ids(text: object) -> SpanIds | None:
    """The span that a ``traceparent`` names; none in what is not exactly one."""
    match = _FORM.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= 512 else None
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.group(1, 2, 3))
    return SpanIds(trace_id, span_id, bool(flags & 1)) if trace_id and span_id else None


def ids_in(fields: Mapping[str, object]) -> SpanIds | None:
    """The span that the headers or the metadata of an answer name."""
    return next((ids for name in NAMES if (ids := read_ids(fields.get(name))) is not None), None)


def ids_kept(metadata: Mapping[str, object]) -> SpanIds | None:
    """The span that a stored turn names: that of the call, as it was told of then, before any other."""
    return read_ids(metadata.get("traceparent")) or ids_in(metadata)


def execution_ids(execution_id: str) -> SpanIds:
    """The span of an execution: the same in every process that works on it, without asking anybody."""
    digest = hashlib.sha256(b"evalstudio execution " + execution_id.encode(errors="replace")).digest()
    return SpanIds(int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1)
