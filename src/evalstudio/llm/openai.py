"""OpenAI's protocol over our own HTTP pool: chat completions and embeddings, of any server that speaks it.

No provider's library is imported. What comes back is read here and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from errno import ECONNREFUSED
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientSSLError,
    ClientTimeout,
    ConnectionTimeoutError,
    InvalidURL,
)
from pydantic import BaseModel
from yarl import URL

from ..base.addresses import is_local
from ..base.json_text import json_text, whole_text
from ..base.paths import fields_of, follow
from ..base.redaction import Redaction
from ..connectors.contract import ConnectorError
from ..connectors.direct import send
from ..connectors.exchange import address, payload
from ..connectors.http_client import AnswerTooLarge, Redirected, read_bounded
from ..connectors.http_pool import HttpPool
from ..messages import Message, TokensUsage, read_usage, text_for_model
from .connections import ANSWER_TOOL, SYSTEM_ROLES, Question, Reply, schema_name
from .failures import (
    ReplyRefused,
    compressed,
    error_in,
    not_asked,
    not_in_time,
    not_reached,
    of_status,
    outside_protocol,
    redacted,
    redirected,
    too_large,
)
from .limits import Failure
from .openai_schema import protocol_schema
from .settings import LlmSettings, Role, Structured, Target, find_access

_CONNECT_SECONDS = 10.0
# Models that reason refuse a temperature, except those that reason only when told to.
_REASONS = re.compile(r"o\d|gpt-([5-9]|\d\d)")
_REASONS_IF_TOLD = re.compile(r"gpt-5-chat|gpt-5\.1(?!-(chat|codex))|gpt-5\.[2-4](?!-(chat|pro))")
# Gateways name models as vendor/model. Models of these vendors are asked for objects by a tool call.
_TOOL_VENDORS = frozenset(
    (
        "amazon",
        "anthropic",
        "bedrock",
        "deepseek",
        "groq",
        "meta",
        "meta-llama",
        "moonshotai",
        "qwen",
        "zai-org",
    )
)
# What a model thought before it answered, where its server leaves that in the text.
_THOUGHT = re.compile(r"\s*<(think|thinking)>.*?(</\1>\s*|\Z)", re.DOTALL)


class RefusedStatus(Exception):
    """An answer with a status other than success, with what else it said."""

    def __init__(self, status: int, headers: Mapping[str, str], body: object) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


class OutsideProtocol(Exception):
    """An answer that is none of a chat completion; the message says why."""


class OpenAIConnection:
    """One server that speaks OpenAI's protocol."""

    def __init__(self, settings: LlmSettings, provider: str) -> None:
        access = find_access(settings, provider)
        most = settings.concurrency
        self.secret = access.secret
        self.redact = Redaction.of([access.secret], shortest=1)
        self._settings = settings
        self._base_url = access.base_url
        self._headers = {"Authorization": f"Bearer {access.api_key}", "Content-Type": "application/json"}
        self._connect_seconds = min(settings.timeout_seconds, _CONNECT_SECONDS)
        # The whole call has its limit where it is tried again.
        self._timeout = ClientTimeout(total=None, sock_connect=self._connect_seconds)
        self._pool = HttpPool(
            limit=most.evaluation + most.persona + most.embedding,
            # A proxy for the world outside cannot reach a server on this machine.
            proxies=not is_local(urlsplit(access.base_url).hostname or ""),
        )
        # OpenAI's own strict answers know bounds on the length of texts; other servers' do not.
        self._own = provider == "openai"
        self._without_temperature: set[str] = set()

    def takes_schema(self, name: str) -> bool:
        vendor, separator, _ = name.partition("/")
        return self._own or not separator or vendor not in _TOOL_VENDORS

    async def ask(self, question: Question) -> Reply:
        model, schema = question.target.model, question.schema
        body = {"model": model, "messages": _sent(question.messages), "stream": False}
        body |= self._options(model, question.role)
        if schema is not None:
            body |= _asking_for(schema, question.structured, self._own)
        try:
            return read_reply(await self._post("chat/completions", body), structured=schema is not None)
        except RefusedStatus as refusal:
            if "temperature" not in body or not _names_temperature(refusal):
                raise
        self._without_temperature.add(model)
        del body["temperature"]
        return read_reply(await self._post("chat/completions", body), structured=schema is not None)

    async def embed(self, target: Target, texts: list[str]) -> tuple[object, TokensUsage]:
        body = {"model": target.model, "input": list(map(whole_text, texts)), "encoding_format": "float"}
        answer = await self._post("embeddings", body)
        items = [fields_of(item) for item in _list(answer.get("data"))]
        by_index = {
            item["index"]: item.get("embedding") for item in items if isinstance(item.get("index"), int)
        }
        if by_index.keys() != set(range(len(items))):
            # A vector in another text's place would be compared as if it were that text's.
            raise OutsideProtocol("no list of embeddings, each with an index of its own, in data")
        return [by_index[index] for index in range(len(items))], read_usage(answer.get("usage"))[
            0
        ] or TokensUsage()

    def explain(self, error: Exception, target: Target) -> Failure:
        """Why the call failed, whether to try again, and what the person can do."""
        return redacted(self._failure(error, target), self.redact)

    async def aclose(self) -> None:
        await self._pool.close()

    def _options(self, model: str, role: Role) -> dict[str, Any]:
        temperature = getattr(self._settings.temperature, role, None)
        if model in self._without_temperature or not takes_temperature(model):
            temperature = None
        options = {
            "temperature": temperature,
            "seed": self._settings.seed,
            "max_completion_tokens": self._settings.max_tokens,
        }
        return {name: value for name, value in options.items() if value is not None}

    async def _post(self, path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        most = self._settings.max_response_bytes
        try:
            async with send(
                self._pool.client(),
                "POST",
                _address(self._base_url, path),
                data=payload(body),
                headers=self._headers,
                timeout=self._timeout,
                auto_decompress=False,
            ) as response:
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise compressed()
                raw = await read_bounded(response, most)
        except AnswerTooLarge:
            raise too_large(most) from None
        answer = _json(raw)
        if response.status >= 300:
            raise RefusedStatus(response.status, response.headers, answer)
        return _successful(answer, response.headers)

    def _failure(self, error: Exception, target: Target) -> Failure:
        match error:
            case RefusedStatus():
                return of_status(error.status, error.body, error.headers, target)
            case ReplyRefused():
                return Failure(f"{target.place} {error}")
            case Redirected():
                return Failure(f"{target.place} {redirected(error.status)}")
            case OutsideProtocol():
                return outside_protocol(target, str(error))
            case ConnectionTimeoutError():
                return not_reached(target, f"it took no connection within {self._connect_seconds:g} s")
            case TimeoutError():
                return not_in_time(target, self._settings.timeout_seconds)
            case ClientSSLError():
                return not_reached(target, "its TLS certificate or handshake failed", again=False)
            case InvalidURL() | ConnectorError() | ValueError():
                return not_reached(target, str(error), again=False)
            case ClientError() | OSError():
                return not_reached(target, _reason(error))
            case _:
                return not_asked(target, error)


@lru_cache(maxsize=256)
def _address(base_url: str, path: str) -> URL:
    return URL(address(base_url, path))


def takes_temperature(model: str) -> bool:
    """Whether a model may be sent a temperature, as far as its name tells."""
    name = model.removeprefix("openai/")
    return _REASONS.match(name) is None or _REASONS_IF_TOLD.match(name) is not None


def _names_temperature(refusal: RefusedStatus) -> bool:
    return refusal.status in (400, 422) and "temperature" in json_text(error_in(refusal.body)).lower()


def _sent(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The conversation as text, what is empty left out."""
    sent: list[dict[str, str]] = []
    for message in messages:
        text = whole_text(text_for_model(message))
        if not text.strip():
            continue
        role = "system" if message.role in SYSTEM_ROLES else message.role
        sent.append({"role": role if role in ("system", "assistant") else "user", "content": text})
    return sent


@lru_cache(maxsize=256)
def _asking_for(schema: type[BaseModel], structured: Structured, lengths: bool) -> dict[str, Any]:
    """The fields of a request that ask for one object of the schema."""
    description = (schema.__doc__ or "").strip()
    form, strict = protocol_schema(schema.model_json_schema(), lengths=lengths)
    if structured == "native":
        shape = {"name": schema_name(schema), "schema": form, "strict": strict}
        shape |= {"description": description} if description else {}
        return {"response_format": {"type": "json_schema", "json_schema": shape}}
    function = {"name": ANSWER_TOOL, "description": description or "Give the answer.", "parameters": form}
    function |= {"strict": True} if strict else {}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}


def _json(raw: bytes) -> object:
    """The body as JSON; as text where it is none. The second reader knows halves of surrogate pairs."""
    for read in (orjson.loads, json.loads):
        try:
            return cast(object, read(raw))
        except (ValueError, RecursionError):
            continue
    return raw.decode(errors="replace")


def _successful(answer: object, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """An answer with a status of success that also says so itself: gateways report errors with status 200."""
    if isinstance(answer, str):
        raise OutsideProtocol(f"not JSON, it begins {answer[:200]!r}" if answer.strip() else "an empty body")
    error = fields_of(answer).get("error")
    if error:
        status = fields_of(error).get("code")
        if isinstance(status, int) and 400 <= status < 600:
            raise RefusedStatus(status, headers, answer)
        raise OutsideProtocol(f"an error with the status of success: {json_text(error)}")
    return fields_of(answer)


def read_reply(answer: Mapping[str, Any], *, structured: bool = True) -> Reply:
    """The reply's text, or the arguments of the answer where it came as a tool call."""
    choices = _list(answer.get("choices"))
    if len(choices) > 1:
        raise OutsideProtocol(f"{len(choices)} choices where one was asked for")
    choice = fields_of(choices[0]) if choices else {}
    message = fields_of(choice.get("message"))
    if not message:
        raise OutsideProtocol(f"no choices[0].message in {json_text(answer)}")
    usage = read_usage(answer.get("usage"))[0] or TokensUsage()
    cached = follow(answer, ("usage", "prompt_tokens_details", "cached_tokens"))
    cached_tokens = max(0, cached) if isinstance(cached, int) else 0
    finish = choice.get("finish_reason")
    if message.get("refusal") or _refuses(message.get("content")):
        return Reply("", usage, cached_tokens, "content_filter")
    calls = _list(message.get("tool_calls")) if structured else []
    text = "\n".join(map(_arguments, calls)) if calls else _without_thought(_text(message.get("content")))
    return Reply(whole_text(text), usage, cached_tokens, finish if isinstance(finish, str) else None)


def _refuses(content: object) -> bool:
    """Whether a part of the content says that there is no answer, whatever the others say."""
    return any(fields_of(part).get("type") == "refusal" for part in _list(content))


def _arguments(call: object) -> str:
    """The answer in a tool call. A call of a tool that was not offered is shown whole: it is no answer."""
    function = fields_of(fields_of(call).get("function"))
    if function.get("name") != ANSWER_TOOL:
        return json_text(call)
    arguments = function.get("arguments")
    return arguments if isinstance(arguments, str) else json_text(arguments)


def _text(content: object) -> str:
    """A message's text, whole or in parts; thoughts and pictures among the parts are no text."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise OutsideProtocol(f"the content of the message is no text: {json_text(content)}")
    parts = [fields_of(part) for part in _list(cast(object, content))]
    return "".join(str(part.get("text", "")) for part in parts if part.get("type", "text") == "text")


def _without_thought(text: str) -> str:
    thought = _THOUGHT.match(text)
    return text[thought.end() :] if thought else text


def _list(value: object) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _reason(error: Exception) -> str:
    if isinstance(error, ClientConnectorDNSError):
        return "its host name is not known (DNS)"
    if isinstance(error, ClientConnectorError):
        error = error.os_error
        if error.errno == ECONNREFUSED:
            return "nothing listens there"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
