"""One tool call in every shape that agents send it in, and what only looks like one."""

from __future__ import annotations

from typing import Any

CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order":7}'}}
ARGUMENTS = {"order": 7}

# Each of them calls refund(order=7) once. Used by the table of what must not pass, too.
CALLS: dict[str, Any] = {
    "OpenAI chat": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "OpenAI's older function_call": {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "refund", "arguments": '{"order":7}'},
    },
    "OpenAI's custom tool": {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "refund", "input": '{"order":7}'}}],
    },
    "OpenAI Responses": {
        "type": "function_call",
        "call_id": "c1",
        "name": "refund",
        "arguments": '{"order":7}',
    },
    "OpenAI Responses with a role": {
        "type": "function_call",
        "role": "assistant",
        "call_id": "c1",
        "name": "refund",
        "arguments": '{"order":7}',
    },
    "OpenAI Responses custom tool": {"type": "custom_tool_call", "name": "refund", "input": '{"order":7}'},
    "OpenAI Responses MCP": {
        "type": "mcp_call",
        "id": "m",
        "name": "refund",
        "arguments": '{"order":7}',
        "output": "ok",
    },
    "Anthropic": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "One moment."},
            {"type": "tool_use", "id": "t1", "name": "refund", "input": ARGUMENTS},
        ],
    },
    "Anthropic, at the provider": {
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "t1", "name": "refund", "input": ARGUMENTS},
            {"type": "web_search_tool_result", "tool_use_id": "t1", "content": []},
            {"type": "text", "text": "Done."},
        ],
    },
    "a lone Anthropic block": {"type": "tool_use", "id": "t1", "name": "refund", "input": ARGUMENTS},
    "Bedrock": {
        "role": "assistant",
        "content": [{"text": "Ok"}, {"toolUse": {"toolUseId": "t", "name": "refund", "input": ARGUMENTS}}],
    },
    "Gemini": {
        "role": "model",
        "parts": [{"text": "Ok"}, {"functionCall": {"name": "refund", "args": ARGUMENTS}}],
    },
    "Gemini in snake case": {
        "role": "model",
        "parts": [
            {
                "text": None,
                "thought": None,
                "function_call": {"id": None, "name": "refund", "args": ARGUMENTS},
            }
        ],
    },
    "Gemini below content": {
        "role": "model",
        "content": {"parts": [{"functionCall": {"name": "refund", "args": ARGUMENTS}}]},
    },
    "LangChain": {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "refund", "args": ARGUMENTS, "id": "a", "type": "tool_call"}],
        "additional_kwargs": {"tool_calls": [{**CALL, "id": "a"}]},
        "tool_call_chunks": [{"name": "refund", "args": '{"order":7}', "id": "a", "index": 0}],
    },
    "LangChain's raw calls": {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [CALL]}},
    "LangChain's unparsed calls": {
        "type": "ai",
        "content": "",
        "invalid_tool_calls": [{"name": "refund", "args": '{"order":7}', "id": "a", "error": None}],
    },
    "LangChain serialised": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": "", "tool_calls": [{"name": "refund", "args": ARGUMENTS, "id": "a"}]},
    },
    "LangChain as data": {
        "type": "ai",
        "data": {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "refund", "args": ARGUMENTS, "id": "a"}],
        },
    },
    "Vercel UI": {
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {
                "type": "tool-refund",
                "toolCallId": "c",
                "state": "output-available",
                "input": ARGUMENTS,
                "output": 1,
            },
            {"type": "text", "text": "Done", "state": "done"},
        ],
    },
    "Vercel dynamic tool": {
        "role": "assistant",
        "parts": [{"type": "dynamic-tool", "toolName": "refund", "toolCallId": "c", "input": ARGUMENTS}],
    },
    "Vercel invocations": {
        "role": "assistant",
        "content": "Done",
        "toolInvocations": [
            {"state": "result", "toolCallId": "c", "toolName": "refund", "args": ARGUMENTS, "result": "r"}
        ],
        "parts": [
            {
                "type": "tool-invocation",
                "toolInvocation": {"toolCallId": "c", "toolName": "refund", "args": ARGUMENTS},
            },
            {"type": "text", "text": "Done"},
        ],
    },
    "Vercel core": {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "refund", "args": ARGUMENTS}],
    },
    "content parts": {
        "role": "assistant",
        "content": "",
        "contentParts": [{"type": "tool_call", "toolCallId": "c", "toolName": "refund", "args": ARGUMENTS}],
    },
    "a bare call with toolName": {"toolName": "refund", "args": ARGUMENTS},
    "a bare call with parameters": {"name": "refund", "parameters": ARGUMENTS},
    "a bare call with input": {"name": "refund", "input": ARGUMENTS},
    "calls in camel case": {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"name": "refund", "arguments": ARGUMENTS}],
    },
    "a numbered call": {
        "role": "assistant",
        "id": 4,
        "tool_calls": [{"id": 1, "function": {"name": "refund", "args": ARGUMENTS}}],
    },
}

# Something that looks like a call or a message, and the words an error quotes of it.
UNREADABLE: dict[str, tuple[Any, str]] = {
    "tool_calls that are no list": (
        {"role": "assistant", "content": "Ok", "tool_calls": {"refund": 7}},
        "refund",
    ),
    "tool_calls that are a text": (
        {"role": "assistant", "content": "Ok", "tool_calls": "refund()"},
        "refund()",
    ),
    "a call that is a text": ({"role": "assistant", "content": "Ok", "tool_calls": ["refund"]}, "refund"),
    "a call without a name": (
        {"role": "assistant", "content": "Ok", "tool_calls": [{"args": {"order": 7}}]},
        "order",
    ),
    "a call with a number for a name": (
        {"role": "assistant", "content": "Ok", "tool_calls": [{"function": {"name": 7, "arguments": "{}"}}]},
        "without the name of its tool",
    ),
    "a call with an empty name": (
        {"role": "assistant", "content": "Ok", "tool_calls": [{"function": {"name": "", "arguments": "{}"}}]},
        "without the name of its tool",
    ),
    "a tool_use block without a name": (
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Ok"}, {"type": "tool_use", "input": {"order": 7}}],
        },
        "tool_use",
    ),
    "a functionCall that is a text": (
        {"role": "model", "parts": [{"text": "Ok"}, {"functionCall": "refund"}]},
        "refund",
    ),
    "an empty functionCall": (
        {"role": "model", "parts": [{"text": "Ok"}, {"functionCall": {}}]},
        "functionCall",
    ),
    "parts that are no list": ({"role": "model", "content": "Ok", "parts": {"functionCall": {}}}, "parts"),
    "a function_call item without a name": ({"type": "function_call", "arguments": "{}"}, "function_call"),
    "calls under a key nobody knows": (
        {"role": "assistant", "content": "Ok", "pending_tool_calls": [{"name": "refund"}]},
        "pending_tool_calls",
    ),
    "a part with calls under a key nobody knows": (
        {"role": "assistant", "content": [{"type": "text", "text": "Ok", "toolUses": [{"name": "refund"}]}]},
        "toolUses",
    ),
    "a message inside a content": (
        {
            "role": "assistant",
            "content": [{"role": "model", "parts": [{"functionCall": {"name": "refund"}}]}],
        },
        "role",
    ),
    "a list inside a content": (
        {"role": "assistant", "content": ["Ok", [{"type": "tool_use", "name": "refund"}]]},
        "refund",
    ),
    "a content that is a number": ({"role": "assistant", "content": 7}, "content"),
    "an item without a role": ({"content": "Ok"}, "role"),
    "a type nobody knows without a role": ({"type": "event", "content": "Ok"}, "role"),
    "an invocation without a tool": (
        {"role": "assistant", "content": "Ok", "toolInvocations": [{"state": "call"}]},
        "state",
    ),
}
