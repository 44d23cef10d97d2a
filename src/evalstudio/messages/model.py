"""Messages in OpenAI's shape. What comes in another one is brought to it by ``shapes``, on the way in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, cast
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    field_validator,
    model_validator,
)

from ..base.constructed import as_read
from ..base.json_text import UnclearJson, json_once, json_text
from ..base.problems import problems_of
from .parts import UnreadableMessage, as_fields, is_said, quoted, read_call, type_of
from .plain import KNOWN_ROLES, is_plain, is_read, is_read_call
from .shapes import has_speaker, looks_like_message, messages_in


class ContentBlock(BaseModel):
    """One part of a multi-part content; unknown kinds keep their fields."""

    model_config = ConfigDict(extra="allow")

    type: str = "text"
    text: str | None = None


class FunctionCall(BaseModel):
    """The function a tool call names, its arguments as JSON text."""

    model_config = ConfigDict(extra="allow")

    name: str
    arguments: str = "{}"

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_json_text(cls, value: object) -> object:
        if value is None or value == "":
            return "{}"
        return value if isinstance(value, str) else json_text(value)


class ToolCall(BaseModel):
    """A call the agent made to one of its tools."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    type: str = "function"
    function: FunctionCall

    @model_validator(mode="before")
    @classmethod
    def _from_other_shapes(cls, value: object) -> object:
        """Accept a call in any of the shapes that frameworks write one in."""
        if is_read_call(value):
            return value
        fields = as_fields(value)
        return value if fields is None or isinstance(value, ToolCall) else read_call(fields, type_of(fields))

    @property
    def name(self) -> str:
        return self.function.name

    def arguments(self) -> Any:
        """The parsed arguments; ``ValueError`` when the agent wrote something that is not JSON."""
        try:
            return json_once(self.function.arguments)
        except UnclearJson as error:
            raise ValueError(f"arguments of {self.name} are {error}") from None
        except ValueError as error:
            raise ValueError(f"arguments of {self.name} are not valid JSON: {error}") from None


class Message(BaseModel):
    """One chat message. Unknown fields are kept as they came."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[ContentBlock] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_other_shapes(cls, value: object) -> object:
        fields = None if isinstance(value, Message) else as_fields(value)
        if fields is None or is_plain(fields):
            return value
        read = messages_in(fields)
        if len(read) != 1:
            raise UnreadableMessage(f"holds {len(read)} messages; put it into a list: {quoted(fields)}")
        return read[0]

    @classmethod
    def unread(cls, stored: Mapping[str, Any]) -> Message:
        """A message as ``to_json`` wrote it, taken as it is: nothing in it is looked for or refused."""
        fields = dict(stored)
        if isinstance(fields.get("content"), list):
            fields["content"] = [ContentBlock.model_construct(**block) for block in fields["content"]]
        if fields.get("tool_calls"):
            fields["tool_calls"] = [
                ToolCall.model_construct(
                    **call | {"function": FunctionCall.model_construct(**call["function"])}
                )
                for call in fields["tool_calls"]
            ]
        return cls.model_construct(**fields)

    @classmethod
    def said(cls, role: str, text: str) -> Message:
        """A message of a known role that is text and nothing else."""
        return as_read(cls, {"role": role, "content": text}, _MESSAGE)

    @property
    def text(self) -> str:
        return text_of(self)

    def to_json(self) -> dict[str, Any]:
        """The message as it goes over the wire: OpenAI's names, nothing that is not set."""
        return self.model_dump(exclude_none=True)


_MESSAGE: dict[str, Any] = dict.fromkeys(Message.model_fields)
_CALL: dict[str, Any] = {"id": "", "type": "function", "function": None}


def _unchanged(fields: dict[str, Any]) -> Message | None:
    """The message, where validating ``is_read`` fields would leave all of them as they are."""
    calls = fields.get("tool_calls")
    if any(value is not None and value is not calls and type(value) is not str for value in fields.values()):
        return None
    if calls is None:
        return as_read(Message, fields, _MESSAGE)
    read: list[ToolCall] = []
    for call in calls:
        function = call["function"]
        if type(function["arguments"]) is not str or not function["arguments"]:
            return None
        if type(function["name"]) is not str or type(call["id"]) is not str:
            return None
        named = {"name": function["name"], "arguments": function["arguments"]}
        read.append(as_read(ToolCall, call | {"function": as_read(FunctionCall, named, {})}, _CALL))
    return as_read(Message, fields | {"tool_calls": read}, _MESSAGE)


def text_of(message: Message | str | Iterable[ContentBlock] | None) -> str:
    """The text of a message or of its content; text blocks are joined by line breaks."""
    content = message.content if isinstance(message, Message) else message
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if block.text is not None and is_said(block.type))


_LONG_BLANK = 1_000
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: blanks, control and invisible characters only."""
    # A text that shows nothing for long is looked at by its different characters.
    chars = text if len(text) <= _LONG_BLANK or not is_blank(text[:_LONG_BLANK]) else set(text)
    return all(char.isspace() or char in _BLANK or category(char) in ("Cc", "Cf") for char in chars)


def tool_calls_of(messages: Iterable[Message]) -> list[ToolCall]:
    """Every tool call an assistant made in these messages, in order."""
    return [call for message in messages if message.role == "assistant" for call in message.tool_calls or ()]


def calls_of_results(messages: Sequence[Message]) -> list[ToolCall]:
    """Calls of which only the result is there, with its tool's name: they were made."""
    calls, results = tool_calls_of(messages), [m for m in messages if m.role in ("tool", "function")]
    ids, answered = {call.id for call in calls if call.id}, {m.tool_call_id for m in results}
    unanswered = Counter(call.name for call in calls if not call.id or call.id not in answered)
    alone: dict[tuple[str, object], ToolCall] = {}
    for place, one in enumerate(results):
        if one.name and one.tool_call_id not in ids:
            function = FunctionCall(name=one.name, arguments="(not known)")
            alone[one.name, one.tool_call_id or place] = ToolCall(function=function)
    # Some agents give their results ids and their calls none.
    left = Counter(call.name for call in alone.values()) - unanswered
    made: list[ToolCall] = []
    for name, number in left.items():
        made += [call for call in alone.values() if call.name == name][:number]
    return made


class UnreadableItem(UnreadableMessage):
    """An item of a list that is no message; ``place`` counts from 1, ``role`` is one nobody expects."""

    def __init__(self, place: int, problem: str, role: str | None = None) -> None:
        super().__init__(f"message {place} {problem}")
        self.place = place
        self.problem = problem
        self.role = role


def read_messages(
    items: Iterable[object], *, speaker: str | None = None, roles: Collection[str] | None = KNOWN_ROLES
) -> list[Message]:
    """The messages in a list, in whatever shape they are; ``UnreadableItem`` says which cannot be read.

    One item may hold several messages. ``speaker`` is who said what has no role: texts and content blocks.
    """
    messages: list[Message] = []
    for place, item in enumerate(items, 1):
        read = [item] if isinstance(item, Message) else _read_item(item, place, speaker)
        unknown = next((message.role for message in read if roles and message.role not in roles), None)
        if unknown is not None:
            known = ", ".join(roles or ())
            raise UnreadableItem(place, f'has the role "{unknown[:40]}"; known are {known}', unknown)
        messages += read
    return messages


def _read_item(item: object, place: int, speaker: str | None) -> list[Message]:
    if isinstance(item, str) and speaker is not None:
        return [Message.said(speaker, str(item))]
    fields = as_fields(item)
    if fields is None:
        raise UnreadableItem(place, f"is {kind_of(item)}")
    if speaker is not None and type_of(fields) == "text" and not has_speaker(fields):
        fields = {"role": speaker, "content": [fields]}
    try:
        if is_read(fields):
            return [_unchanged(fields) or Message.model_validate(fields)]
        return [Message.model_validate(one) for one in messages_in(fields)]
    except UnreadableMessage as error:
        raise UnreadableItem(place, f"is not valid: {error}") from None
    except ValidationError as error:
        raise UnreadableItem(place, f"is not valid: {problems_of(error)[0]}") from None


def read_answer(value: object) -> list[Message] | None:
    """The messages in an agent's answer where it is a message or a list of them; nothing where it is not."""
    if isinstance(value, list | tuple):
        items = cast(list[Any], value)
        shapes = [looks_like_message(as_fields(item) or {}) for item in items]
        return read_messages(items, speaker="assistant") if any(shapes) else None
    if isinstance(value, Message):
        return [value]
    fields = as_fields(value)
    return None if fields is None or not looks_like_message(fields) else read_messages([as_said(fields)])


def as_said(fields: Mapping[str, Any], speaker: str = "assistant") -> Mapping[str, Any]:
    """The object with a role where it does not say who speaks."""
    return fields if has_speaker(fields) else {"role": speaker, **fields}


def _one_by_one(value: object) -> object:
    """A list in which every item is one message. What cannot be read is refused where it stands."""
    if not isinstance(value, list | tuple):
        return value
    return [one for item in cast(list[object], value) for one in _held_by(item)]


def _held_by(item: object) -> list[Any]:
    fields = None if isinstance(item, Message) else as_fields(item)
    if fields is None or is_plain(fields):
        return [item]
    try:
        read = messages_in(fields)
    except UnreadableMessage:
        return [item]
    return [item] if len(read) == 1 else read


MessageList = Annotated[list[Message], BeforeValidator(_one_by_one), AfterValidator(read_messages)]
"""A list of messages in any shape, as a field of a model."""


def kind_of(value: object) -> str:
    """``a list``, ``an int``, for an error."""
    if value is None:
        return "nothing"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeio" else f"a {name}"


def text_for_model(message: Message) -> str:
    """Its text; tool calls are written as text, for the tools cannot be offered here."""
    text = text_of(message)
    if message.role == "tool":
        return f"[result of {message.name or message.tool_call_id or 'a tool'}] {text}"
    calls = [f"[called {call.name} with {call.function.arguments}]" for call in message.tool_calls or ()]
    return "\n".join([text, *calls] if text else calls)


def as_text(value: Any) -> str | None:
    """The text of a value: strings, messages and plain numbers have one, containers do not."""
    if isinstance(value, str):
        return value
    if isinstance(value, Message):
        return text_of(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return None
