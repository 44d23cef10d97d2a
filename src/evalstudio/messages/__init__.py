"""Chat messages in OpenAI's shape, and the reader that brings every other shape to it.

The lowest layer: everything else uses these types.
"""

from .model import (
    ContentBlock,
    FunctionCall,
    Message,
    MessageList,
    ToolCall,
    UnreadableItem,
    as_said,
    as_text,
    calls_of_results,
    is_blank,
    kind_of,
    read_answer,
    read_messages,
    text_for_model,
    text_of,
    tool_calls_of,
)
from .parts import UnreadableMessage, as_fields, read_call, type_of
from .shapes import KNOWN_ROLES, has_speaker, looks_like_message
from .usage import MOST_TOKENS, TokensUsage, read_cost, read_usage

__all__ = [
    "KNOWN_ROLES",
    "MOST_TOKENS",
    "ContentBlock",
    "FunctionCall",
    "Message",
    "MessageList",
    "TokensUsage",
    "ToolCall",
    "UnreadableItem",
    "UnreadableMessage",
    "as_fields",
    "as_said",
    "as_text",
    "calls_of_results",
    "has_speaker",
    "is_blank",
    "kind_of",
    "looks_like_message",
    "read_answer",
    "read_call",
    "read_cost",
    "read_messages",
    "read_usage",
    "text_for_model",
    "text_of",
    "tool_calls_of",
    "type_of",
]
