"""Messages as providers and frameworks write them, brought to OpenAI's shape.

Known are OpenAI's chat messages and Responses items, Anthropic's and Bedrock's blocks, Gemini's parts,
LangChain's messages (plain and serialised) and Vercel's interface messages. One item may hold several
messages: a tool's result is a message of its own wherever it stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..base.json_text import json_text
from .parts import (
    CALL_KEYS,
    Block,
    Call,
    Fields,
    Part,
    Result,
    UnreadableMessage,
    as_fields,
    call_with_result,
    hides_call,
    id_text,
    is_call,
    is_marked,
    is_result,
    is_said,
    quoted,
    read_part,
    read_result,
    tool_text,
    type_of,
)
from .plain import KNOWN_ROLES

_ROLES = {name: name for name in KNOWN_ROLES} | {
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "human": "user",
}
# The types of LangChain's messages. "remove" orders to forget a message and is none itself.
_LANGCHAIN = {"ai": "assistant", "human": "user", "remove": "remove"} | {
    name: name for name in ("tool", "system", "developer", "function")
}
_ITEMS_KEPT = frozenset({"reasoning", "thinking", "redacted_thinking", "mcp_list_tools", "compaction"})
_CALL_LISTS = (
    "tool_calls",
    "toolCalls",
    "invalid_tool_calls",
    "toolInvocations",
    "tool_invocations",
    "function_calls",
    "functionCalls",
)
# The pieces in which LangChain's calls arrived; they say nothing new where the calls are there.
_CHUNKS = "tool_call_chunks"
_CONTENTS = ("content", "contentParts", "parts")
_READ = frozenset({"role", "content", "parts", "additional_kwargs", _CHUNKS, *_CALL_LISTS, *CALL_KEYS})
_SPOKEN = frozenset({"role", *_CONTENTS, _CHUNKS, *_CALL_LISTS})


def looks_like_message(fields: Mapping[str, Any]) -> bool:
    """Whether an object is a message, or something that stands for one."""
    return bool(fields) and (not _SPOKEN.isdisjoint(fields) or has_speaker(fields))


def has_speaker(fields: Mapping[str, Any]) -> bool:
    """Whether it can be told who said it."""
    unwrapped = _unwrapped(dict(fields))
    return "role" in unwrapped or _role(unwrapped) is not None or _stands_alone(unwrapped)


def messages_in(item: Mapping[str, Any]) -> list[Fields]:
    """The messages an item holds, in OpenAI's shape."""
    fields = _unwrapped(dict(item))
    role = _role(fields)
    if role is None:
        return _alone(fields) if _stands_alone(fields) else [fields]
    if role == "remove":
        return []
    if role == "user" and is_result(fields):
        return [read_result(fields)]
    if key := hides_call(fields, _READ):
        raise UnreadableMessage(f'what is under "{key}" cannot be read: {quoted(fields)}')
    own = _own_call(fields, role)
    kept = {} if own else _kept(fields)
    return _Assembly(role, [*_listed_calls(fields), *own]).of(_content(fields, role), kept)


def _unwrapped(fields: Fields) -> Fields:
    """The message in LangChain's serialised forms: a constructor's arguments, or the data of a type."""
    kind, names = type_of(fields), fields.get("id")
    inner, data = as_fields(fields.get("kwargs")), as_fields(fields.get("data"))
    if kind == "constructor" and inner is not None and isinstance(names, list) and names:
        return {"type": str(cast(list[Any], names)[-1]), **inner}
    if data is not None and "content" in data and _langchain_role(kind):
        return {**data, "type": kind}
    return fields


def _langchain_role(kind: str) -> str | None:
    return _LANGCHAIN.get(kind.removesuffix("Chunk").removesuffix("Message").lower())


def _role(fields: Fields) -> str | None:
    """Who speaks, by the name we have for it; nothing where it is not said."""
    role = fields.get("role")
    if isinstance(role, str):
        return _ROLES.get(role.casefold(), role)
    if role is not None:
        return None
    by_type = _langchain_role(type_of(fields))
    return by_type if "content" in fields or by_type == "remove" else None


def _stands_alone(fields: Fields) -> bool:
    """Whether an item without a role is a call, a result or a thought by itself."""
    if "role" in fields:
        return False
    return (
        type_of(fields) in _ITEMS_KEPT or is_marked(fields) or ("content" not in fields and is_call(fields))
    )


def _alone(fields: Fields) -> list[Fields]:
    return _Assembly("assistant", []).of(read_part(fields, loose=True), {})


def _own_call(fields: Fields, role: str) -> list[Call]:
    """The call that a message is itself: some agents give their calls a role."""
    if role != "assistant":
        return []
    own = {key: item for key, item in fields.items() if key not in _READ}
    alone = _READ.isdisjoint(fields.keys() - {"role"})
    return [call_with_result(own, type_of(own))] if is_marked(own) or (alone and is_call(own)) else []


def _listed_calls(fields: Fields) -> list[Call]:
    """The calls in a message's own fields, each once however often it is written there."""
    calls: list[Call] = []
    extra = as_fields(fields.get("additional_kwargs")) or {}
    for source in (fields, extra):
        for name in _CALL_LISTS:
            _add_new(calls, _calls_under(source, name))
        for name in CALL_KEYS & source.keys():
            _add_new(calls, _calls_under({name: source[name] and [source[name]]}, name))
    return calls or _calls_under(fields, _CHUNKS)


def _calls_under(fields: Fields, name: str) -> list[Call]:
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise UnreadableMessage(f'"{name}" must be a list of tool calls: {quoted(value)}')
    return [_listed_call(item, name) for item in cast(Iterable[Any], value)]


def _listed_call(item: Any, name: str) -> Call:
    fields = as_fields(item)
    if fields is None:
        raise UnreadableMessage(f'what is under "{name}" cannot be read as a tool call: {quoted(item)}')
    match read_part(fields) if not CALL_KEYS.isdisjoint(fields) else ():
        case [Call() as call]:
            return call
        case _:
            return call_with_result(fields, type_of(fields))


def _add_new(calls: list[Call], more: list[Call]) -> None:
    """Add the calls that are not there yet. Two equal ones of one source are two calls."""
    earlier = _Others(calls) if calls and more else None
    calls += [call for call in more if earlier is None or earlier.take(call) is None]


class _Others:
    """Calls of which each is taken once, by its id, else by its name and arguments; the first one first."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.left = dict(enumerate(calls))
        self._places: dict[tuple[str, ...], deque[int]] = {}
        for place, call in self.left.items():
            for key in _keys(call.fields):
                self._places.setdefault(key, deque()).append(place)

    def take(self, call: Call) -> Call | None:
        """The same call among these. One with an id is also one that has none, with the same arguments."""
        name, call_id = _name_and_id(call.fields)
        text = ("text" if call_id else "any text", name, _arguments_text(call.fields))
        places = [self._first(key) for key in (("id", name, call_id), text) if key[2] or key is text]
        present = [place for place in places if place is not None]
        return self.left.pop(min(present)) if present else None

    def _first(self, key: tuple[str, ...]) -> int | None:
        places = self._places.get(key, deque[int]())
        while places and places[0] not in self.left:
            places.popleft()
        return places[0] if places else None


def _keys(call: Fields) -> list[tuple[str, ...]]:
    """By what a call is found: its arguments alone only where one of the two has no id."""
    name, call_id = _name_and_id(call)
    text = _arguments_text(call)
    own = ("id", name, call_id) if call_id else ("text", name, text)
    return [own, ("any text", name, text)]


def _name_and_id(call: Fields) -> tuple[str, str]:
    call_id = call["id"]
    return str(call["function"]["name"]), call_id if isinstance(call_id, str) else json_text(call_id)


def _arguments_text(call: Fields) -> str:
    arguments = call["function"]["arguments"]
    return arguments if isinstance(arguments, str) and arguments else json_text(arguments or {})


def _content(fields: Fields, role: str) -> list[Part] | str | None:
    """What a message says, whether it is written, spoken or a refusal."""
    content = _written(fields, role)
    audio = as_fields(fields.get("audio")) or {}
    for text in (audio.get("transcript"), fields.get("refusal")):
        if isinstance(text, str) and text.strip():
            content = _with_text(content, text)
    return content


def _with_text(content: list[Part] | str | None, text: str) -> list[Part] | str:
    """The content with what it says elsewhere, unless it says that already."""
    if not content or content == text:
        return text
    parts: list[Part] = [Block({"type": "text", "text": content})] if isinstance(content, str) else content
    return parts if text in _texts(parts) else [*parts, Block({"type": "text", "text": text})]


def _written(fields: Fields, role: str) -> list[Part] | str | None:
    """The content part by part; plain text stays what it is."""
    content: Any = fields.get("content")
    inner = as_fields(content)
    if inner is not None and isinstance(inner.get("parts"), list):
        content = inner["parts"]
    for name in ("contentParts", "parts"):
        if fields.get(name) is not None:
            return _beside(content, _read_parts(fields[name], role, name), name, role)
    if content is None and isinstance(fields.get("text"), str):
        return fields["text"]
    if as_fields(content) is None and not isinstance(content, list | tuple):
        return content
    if role in ("tool", "function") and not _is_typed(cast(object, content)):
        return tool_text(content)
    return _read_parts(content, role)


def _is_typed(content: object) -> bool:
    """Whether a tool's content is made of blocks; otherwise it is data, and nothing in it is looked for."""
    items = cast(list[Any], content) if isinstance(content, list) else [content]
    return all(isinstance(item, str) or type_of(as_fields(item) or {}) for item in items)


def _read_parts(content: Any, role: str, name: str = "content") -> list[Part]:
    lone = as_fields(content)
    items: Any = [lone] if lone is not None and name == "content" else content
    if not isinstance(items, list | tuple):
        raise UnreadableMessage(f'"{name}" must be a list of parts: {quoted(content)}')
    return [part for item in cast(Iterable[Any], items) for part in _read_item(item, role)]


def _read_item(item: Any, role: str) -> list[Part]:
    if isinstance(item, str):
        return [Block({"type": "text", "text": item})]
    fields = as_fields(item)
    if fields is None:
        raise UnreadableMessage(f"a part of the content cannot be read: {quoted(item)}")
    return read_part(fields, loose=role == "assistant")


def _beside(content: Any, parts: list[Part], name: str, role: str) -> list[Part]:
    """The parts, where the content beside them says the same or nothing."""
    flat = content if isinstance(content, str) else "\n".join(_texts(_read_parts(content or [], role)))
    texts = _texts(parts)
    if not texts:
        return [Block({"type": "text", "text": flat}), *parts] if flat.strip() else parts
    whole, end = " ".join(flat.split()), 0
    for text in texts if whole else ():
        piece = " ".join(text.split())
        start = whole.find(piece, end)
        end = start + len(piece)
        if start < 0:
            raise UnreadableMessage(
                f'"content" beside "{name}" says something else: {quoted(flat)} beside {quoted(texts)}; '
                "send one of them"
            )
    return parts


def _texts(parts: Iterable[Part]) -> list[str]:
    blocks = (part.fields for part in parts if isinstance(part, Block))
    texts = (block.get("text") for block in blocks if is_said(type_of(block) or "text"))
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _kept(fields: Fields) -> Fields:
    """The fields that go on as they are."""
    kept = {key: item for key, item in fields.items() if key not in _READ}
    extra = as_fields(fields.get("additional_kwargs"))
    if extra := {key: item for key, item in (extra or {}).items() if key not in _READ}:
        kept["additional_kwargs"] = extra
    if type_of(kept) == "message" or _langchain_role(type_of(kept)):
        del kept["type"]
    for name in {"id", "tool_call_id"} & kept.keys():
        kept[name] = id_text(kept[name])
    if fields.get("content") is None and not {"contentParts", "parts"} & fields.keys():
        kept.pop("text", None)
    return kept


class _Assembly:
    """The messages that a list of parts makes. ``listed`` are the calls that stand beside the content."""

    def __init__(self, role: str, listed: list[Call]) -> None:
        self.role = role
        self.listed = _Others(listed)
        self.messages: list[Fields] = []
        self.blocks: list[Fields] = []
        self.calls: list[Fields] = []

    def of(self, content: list[Part] | str | None, kept: Fields) -> list[Fields]:
        if isinstance(content, list):
            for part in content:
                self._add(part)
        else:
            self.messages.append({"role": self.role, "content": content})
        self._close()
        self._add_listed()
        first = next((message for message in self.messages if message["role"] == self.role), self.messages[0])
        return [kept | message if message is first else message for message in self.messages]

    def _add(self, part: Part) -> None:
        if isinstance(part, Block):
            self.blocks.append(part.fields)
        elif isinstance(part, Result):
            self._close()
            self.messages.append(part.fields)
        else:
            # The list beside the content has the arguments whole where a stream left pieces in the blocks.
            listed = self.listed.take(part)
            self.calls.append((listed or part).fields)
            if result := part.result or (listed and listed.result):
                self._add(result)

    def _close(self) -> None:
        """End the message at hand: what follows a tool's result is another one."""
        if not (self.blocks or self.calls):
            return
        message: Fields = {
            "role": self.role,
            "content": _simplest(self.blocks) if self.calls else self.blocks,
        }
        if self.calls:
            message["tool_calls"] = self.calls
        self.messages.append(message)
        self.blocks, self.calls = [], []

    def _add_listed(self) -> None:
        """The calls of the list that are in no part belong to the first message."""
        said = any(message["role"] == self.role for message in self.messages)
        listed = list(self.listed.left.values())
        if not said and (listed or not self.messages):
            self.messages.append({"role": self.role, "content": None})
        if listed:
            first = next(message for message in self.messages if message["role"] == self.role)
            first["tool_calls"] = [*first.get("tool_calls", ()), *(call.fields for call in listed)]
            self.messages += [call.result.fields for call in listed if call.result]


def _simplest(blocks: list[Fields]) -> Any:
    """Nothing, the text of a lone text block, or the blocks."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks or None
