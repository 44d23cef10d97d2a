"""What a stream adds up to: texts and tool calls that come in pieces, as messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, cast

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.paths import MISSING, fields_of, follow, items_of, read_path
from .contract import ConnectorError, ConnectorResponse

Fields = dict[str, Any]


@dataclass(slots=True, frozen=True)
class StreamPaths:
    """Where the events of a stream have what; without a text path they are read by their protocol."""

    text: str = ""
    tool_calls: str | None = None
    usage: str = "usage"
    thread_id: str = "threadId"
    end: str | None = None


@dataclass(slots=True)
class CallParts:
    """A tool call of which the parts come one after another."""

    id: str = ""
    name: str = ""
    more_name: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])
    whole: Any = None

    def to_json(self) -> Fields:
        if self.whole is not None:
            return cast(Fields, self.whole)
        function = {"name": "".join([self.name, *self.more_name]), "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


class StreamReply:
    """What has come so far. ``over`` means that nothing more is to be read, ``begun`` that something came.

    ``end_sign`` is what a stream of this kind ends with; one that ends without it broke off.
    """

    def __init__(self, fault: Callable[[str, str], ConnectorError], paths: StreamPaths) -> None:
        self.fault = fault
        self.paths = paths
        self.over = False
        self.begun = False
        self.ended = False
        self.events = 0
        self.usage: Fields = {}
        self.metadata: Fields = {}
        self._end_sign = paths.end
        self._texts: list[str] = []
        self._calls: dict[object, CallParts] = {}
        self._messages: list[Any] = []
        self._thread_id: str | None = None

    def expect(self, end_sign: str) -> None:
        self._end_sign = self._end_sign or end_sign

    def end(self) -> None:
        self.ended = self.over = True

    def reported(self, error: str) -> ConnectorError:
        return self.fault("reported an error in its stream", error)

    def finish(self) -> None:
        """The body is over; an end that was due and did not come means that it broke off."""
        if not self.events:
            raise self.fault("sent an empty stream", "")
        if self._end_sign is not None and not self.ended:
            problem = "broke off in the middle of its answer: its stream ended without"
            raise self.fault(f"{problem} {self._end_sign}", "")

    def response(self) -> ConnectorResponse:
        self.flush()
        return ConnectorResponse(
            messages=self._messages or [{"role": "assistant", "content": ""}],
            tokens_usage=self.usage or None,
            thread_id=self._thread_id,
            metadata=self.metadata,
        )

    def add_text(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self.begun = True
            self._texts.append(text)

    def add_message(self, message: Any) -> None:
        """A message that is not in pieces."""
        self.flush()
        self.begun = True
        self._messages.append(message)

    def call(self, key: object) -> CallParts:
        """The parts of the call with this key so far."""
        self.begun = True
        return self._calls.setdefault(key, CallParts())

    def add_call(self, call: Any) -> None:
        """A call that is not in pieces; the same id again is the same call."""
        fields = fields_of(call)
        key = fields.get("id") or fields.get("toolCallId") or ("call", len(self._calls))
        self.call(str(key)).whole = call

    def add_calls(self, calls: Any) -> None:
        """Tool calls as OpenAI streams them, by index and with their arguments in pieces; or whole ones."""
        for part in items_of(calls) or ([calls] if calls else []):
            fields = fields_of(part)
            if "index" not in fields:
                self.add_call(part)
                continue
            function = fields_of(fields.get("function"))
            call = self.call(("index", str(fields["index"])))
            call.id = str(fields.get("id") or call.id)
            call.more_name.append(str(function.get("name") or ""))
            call.arguments.append(argument_text(function.get("arguments")))

    def add_result(self, call_id: Any, result: Any) -> None:
        content = result if isinstance(result, str) else json_text(result)
        self.add_message({"role": "tool", "tool_call_id": str(call_id or ""), "content": content})

    def flush(self) -> None:
        """What was said and called so far is one message."""
        if self._texts or self._calls:
            message: Fields = {"role": "assistant", "content": "".join(self._texts) or None}
            if self._calls:
                message["tool_calls"] = [call.to_json() for call in self._calls.values()]
            self._messages.append(message)
        self._texts, self._calls = [], {}

    def add_usage(self, usage: Any) -> None:
        counts = fields_of(usage)
        self.usage |= {name: count for name, count in counts.items() if count is not None}

    def add_counts(self, sent: Any, received: Any) -> None:
        counts = {"input_tokens": sent, "output_tokens": received}
        self.usage |= {name: count for name, count in counts.items() if isinstance(count, int)}

    def add_facts(self, event: Fields) -> bool:
        """Usage and thread, where an event has them."""
        usage = follow(event, read_path(self.paths.usage))
        self.add_usage(usage)
        thread = follow(event, read_path(self.paths.thread_id))
        if isinstance(thread, str | int) and not isinstance(thread, bool):
            self._thread_id = str(thread)
        return bool(fields_of(usage)) or thread not in (MISSING, None)


def argument_text(arguments: Any) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json_text(arguments)
