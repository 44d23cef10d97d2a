"""Our messages and schemas in the provider library's shapes, and its replies in ours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pydantic import BaseModel
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from ..base.json_text import json_text, whole_text
from ..messages import Message, TokensUsage, text_for_model
from .connections import ANSWER_TOOL, SYSTEM_ROLES, Reply, schema_name
from .settings import Structured

_PLAIN = ModelRequestParameters()


def to_provider(messages: Sequence[Message]) -> list[ModelMessage]:
    """The conversation as text, what is empty left out."""
    sent: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    for message in messages:
        text = text_for_model(message)
        if not text.strip():
            continue
        if message.role == "assistant":
            if parts:
                sent.append(ModelRequest(parts=parts))
                parts = []
            sent.append(ModelResponse(parts=[TextPart(text)]))
        elif message.role in SYSTEM_ROLES:
            parts.append(SystemPromptPart(text))
        else:
            parts.append(UserPromptPart(text))
    if parts:
        sent.append(ModelRequest(parts=parts))
    return sent


def parameters(schema: type[BaseModel] | None, structured: Structured) -> ModelRequestParameters:
    """What to ask for: plain text, or one object of the schema."""
    return _PLAIN if schema is None else _shaped(schema, structured)


@lru_cache(maxsize=256)
def _shaped(schema: type[BaseModel], structured: Structured) -> ModelRequestParameters:
    description = (schema.__doc__ or "").strip() or None
    json_schema = schema.model_json_schema()
    if structured == "native":
        shape = OutputObjectDefinition(
            json_schema=json_schema, name=schema_name(schema), description=description
        )
        return ModelRequestParameters(output_mode="native", output_object=shape)
    tool = ToolDefinition(
        name=ANSWER_TOOL,
        parameters_json_schema=json_schema,
        description=description or "Give the answer.",
        kind="output",
    )
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def _arguments(call: ToolCallPart) -> str:
    """The answer in a tool call. A call of a tool that was not offered is shown whole: it is no answer."""
    arguments = call.args_as_json_str()
    return arguments if call.tool_name == ANSWER_TOOL else json_text({call.tool_name: arguments})


def from_provider(response: ModelResponse) -> Reply:
    """The reply's text, or the arguments of the answer where it came as a tool call."""
    answers = [_arguments(part) for part in response.parts if isinstance(part, ToolCallPart)]
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    used = response.usage
    usage = TokensUsage.model_construct(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        total_tokens=used.input_tokens + used.output_tokens,
    )
    text = "\n".join(answers) if answers else "".join(texts)
    return Reply(whole_text(text), usage, used.cache_read_tokens, response.finish_reason)
