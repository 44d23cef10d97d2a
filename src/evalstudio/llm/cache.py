"""Answers that need no provider: kept on disk or on a cassette, by everything the answer depends on."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import orjson
from pydantic import BaseModel, ValidationError

from ..base.addresses import shown_address
from ..base.concurrency import blocking
from ..base.paths import fields_of
from ..base.private_files import make_private_folder, open_private
from ..base.redaction import Redaction
from ..cassettes import Cassette, key_of
from ..evaluators.builtin.prompts import MARK
from ..evaluators.contract import Answer
from ..evaluators.model_replies import unread_parts
from ..messages import Message, TokensUsage, text_for_model
from .answers import InvalidAnswer
from .settings import LlmSettings, ModelError, Role, Target
from .usage import RoleUsage

log = logging.getLogger("evalstudio")

_LARGEST = 1_000_000_000
_MOST_COUNTED = 100_000


class AnswerCache:
    """One folder of answers; make one object per execution.

    A request asked several times within one execution (votes, repetitions) is several questions: the second
    asking never gets the first one's answer, or all votes would agree. Asked again in the next execution,
    each finds its own.
    """

    def __init__(self, folder: str | Path, *, max_bytes: int = _LARGEST) -> None:
        self.folder = Path(folder)
        self._max_bytes = max_bytes
        self._asked: OrderedDict[str, int] = OrderedDict()
        self._size: int | None = None
        self._lock = threading.Lock()
        self._warned = False
        try:
            make_private_folder(self.folder.parent)
            make_private_folder(self.folder)
        except OSError as error:
            raise ValueError(f"{self.folder}: no answers can be kept there ({error.strerror})") from None

    def key(self, request: Mapping[str, Any], *, counted: bool = True) -> str:
        """The name of a request; with ``counted``, of this asking of it."""
        key = key_of(request)
        if not counted:
            return key
        with self._lock:
            # Only the latest requests are counted: memory stays flat however many records are scored.
            times = self._asked.pop(key, 0)
            self._asked[key] = times + 1
            if len(self._asked) > _MOST_COUNTED:
                self._asked.popitem(last=False)
        return f"{key}-{times + 1}" if times else key

    async def get(self, key: str) -> dict[str, Any] | None:
        """The answer kept under a key, unless there is none or it cannot be read."""
        return await blocking.run(lambda: self._read(key))

    async def put(self, key: str, response: Mapping[str, Any]) -> None:
        await blocking.run(lambda: self._write(key, orjson.dumps({"key": key, "response": response})))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _read(self, key: str) -> dict[str, Any] | None:
        path = self._path(key)
        try:
            value: Any = orjson.loads(path.read_bytes())
            # What was used last is evicted last.
            os.utime(path)
        except (OSError, orjson.JSONDecodeError):
            return None
        entry = fields_of(value)
        whole = entry.get("key") == key and isinstance(entry.get("response"), dict)
        return entry["response"] if whole else None

    def _write(self, key: str, data: bytes) -> None:
        path = self._path(key)
        part = path.with_name(f".{uuid4().hex}.part")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with open(open_private(part, os.O_WRONLY | os.O_CREAT), "wb") as file:
                file.write(data)
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            if not self._warned:
                self._warned = True
                log.warning("%s: answers are not kept (%s)", self.folder, error.strerror)
            return
        with self._lock:
            if self._size is None:
                self._size = sum(facts.st_size for _, facts in self._files())
            else:
                self._size += len(data)
            if self._size > self._max_bytes:
                self._size = self._evict()

    def _evict(self) -> int:
        """Remove what was not used for longest until a tenth is free; the size that is left."""
        files = sorted(self._files(), key=lambda file: file[1].st_mtime_ns)
        size = sum(facts.st_size for _, facts in files)
        for path, facts in files:
            if size <= self._max_bytes * 0.9:
                break
            with suppress(OSError):
                path.unlink()
            size -= facts.st_size
        return size

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("??/*"):
            # Another process may have removed it meanwhile.
            with suppress(OSError):
                yield path, path.stat()


def text_request(
    settings: LlmSettings,
    target: Target,
    messages: Sequence[Message],
    role: Role,
    schema: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """A request for a text, or for an object of the schema."""
    request = _model(settings, target, "chat" if schema is None else "answer")
    temperature = settings.temperature
    request["temperature"] = temperature.evaluation if role == "evaluation" else temperature.persona
    request |= {"seed": settings.seed, "maxTokens": settings.max_tokens}
    if schema is not None:
        request |= {"structured": settings.structured, "schema": _shape(schema)}
    texts = [(message.role, text_for_model(message)) for message in messages]
    request["messages"] = without_marks([(role, text) for role, text in texts if text.strip()])
    return request


@lru_cache(maxsize=256)
def _shape(schema: type[BaseModel]) -> dict[str, Any]:
    return {"name": schema.__name__, **schema.model_json_schema()}


def vector_request(settings: LlmSettings, target: Target, text: str) -> dict[str, Any]:
    """A request for the vector of one text: which texts share a call is chance."""
    return {**_model(settings, target, "embed"), "text": text}


def _model(settings: LlmSettings, target: Target, op: str) -> dict[str, Any]:
    base_url = settings.access(target.provider).base_url
    address = {"baseUrl": shown_address(base_url)} if base_url else {}
    return {"op": op, "provider": target.provider, "model": target.model, **address}


def without_marks(messages: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """The messages with the first mark as MARK1, the next other one as MARK2, and so on."""
    names: dict[str, str] = {}

    def name_of(mark: re.Match[str]) -> str:
        return names.setdefault(mark[0], f"MARK{len(names) + 1}")

    return [{"role": role, "content": MARK.sub(name_of, text)} for role, text in messages]


T = TypeVar("T")
Vectors = list[list[float]]


class StoredAnswers:
    """What an ``Llm`` remembers: the cassette alone where one is replayed, else the cache first."""

    def __init__(self, cache: AnswerCache | None, cassette: Cassette | None) -> None:
        self._cache = None if cassette is not None and cassette.replaying else cache
        self._cassette = cassette
        self._redact = Redaction()

    @property
    def active(self) -> bool:
        return self._cache is not None or self._cassette is not None

    def hide(self, secrets: Sequence[str | None]) -> None:
        """Keep providers' keys out of everything that is kept."""
        self._redact = Redaction.of([*secrets, *self._redact.secrets], shortest=1)
        if self._cassette is not None:
            self._cassette.hide(secrets)

    async def text(
        self,
        request: dict[str, Any],
        read: Callable[[str], T],
        ask: Callable[[], Awaitable[Answer[T]]],
        tally: RoleUsage,
    ) -> Answer[T]:
        """The answer to a request; ``read`` makes of its text what was asked for."""
        if self._cassette is not None and self._cassette.replaying:
            recorded = self._cassette.find("model", request)
            tally.replayed += 1
            return _replayed(_or_raise(recorded), read, self._cassette)
        key = self._cache.key(request) if self._cache else ""
        cached = await self._cache.get(key) if self._cache else None
        answer = _cached(cached, read) if cached else None
        if cached is not None and answer is not None:
            tally.cached += 1
            self._keep(request, cached)
            return answer
        try:
            answer = await ask()
        except ModelError as error:
            self._keep(request, _of_error(error))
            raise
        response = {"text": answer.raw, "usage": answer.usage.model_dump()}
        # What is not whole is asked for again next time.
        if self._cache and not unread_parts(answer.value):
            await self._cache.put(key, response | {"text": self._redact(answer.raw)})
        self._keep(request, response)
        return answer

    async def vectors(
        self,
        texts: Sequence[str],
        request_for: Callable[[str], dict[str, Any]],
        ask: Callable[[Sequence[str]], Awaitable[Vectors]],
        tally: RoleUsage,
    ) -> Vectors:
        """One vector per text, only the unknown ones asked for."""
        if self._cassette is not None and self._cassette.replaying:
            responses = [_or_raise(self._cassette.find("model", request_for(text))) for text in texts]
            tally.replayed += len(responses)
            return [response["vector"] for response in responses]
        known = await self._cached_vectors(texts, request_for)
        tally.cached += sum(1 for text in texts if text in known)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        try:
            vectors = await ask(missing) if missing else []
        except ModelError as error:
            for text in missing:
                self._keep(request_for(text), _of_error(error))
            raise
        for text, vector in zip(missing, vectors, strict=True):
            known[text] = vector
            if self._cache:
                await self._cache.put(self._cache.key(request_for(text), counted=False), {"vector": vector})
        for text in texts:
            self._keep(request_for(text), {"vector": known[text]}, once=True)
        return [known[text] for text in texts]

    async def _cached_vectors(
        self, texts: Sequence[str], request_for: Callable[[str], dict[str, Any]]
    ) -> dict[str, list[float]]:
        known: dict[str, list[float]] = {}
        if self._cache is None:
            return known
        for text in dict.fromkeys(texts):
            response = await self._cache.get(self._cache.key(request_for(text), counted=False)) or {}
            vector: Any = response.get("vector")
            if isinstance(vector, list) and vector:
                known[text] = vector
        return known

    def _keep(self, request: Mapping[str, Any], response: Mapping[str, Any], *, once: bool = False) -> None:
        if self._cassette is not None:
            self._cassette.keep("model", request, response, once=once)


def _cached(response: Mapping[str, Any], read: Callable[[str], T]) -> Answer[T] | None:
    """A cached answer that can still be read; it uses nothing."""
    text = response.get("text")
    try:
        return Answer(read(text), TokensUsage(), text) if isinstance(text, str) else None
    except InvalidAnswer:
        return None


def _replayed(response: Mapping[str, Any], read: Callable[[str], T], cassette: Cassette) -> Answer[T]:
    """A recorded answer as it was then, with what it had used: a replayed run has the same figures."""
    try:
        text = str(response["text"])
        return Answer(read(text), TokensUsage.model_validate(response.get("usage") or {}), text)
    except (InvalidAnswer, ValidationError, KeyError) as error:
        raise ModelError(f"an answer recorded in {cassette.path} cannot be used: {error}") from None


def _of_error(error: ModelError) -> dict[str, Any]:
    return {"error": {"message": str(error), "raw": error.raw, "status": error.status}}


def _or_raise(response: dict[str, Any]) -> dict[str, Any]:
    if isinstance(response.get("error"), dict):
        error: Mapping[str, Any] = response["error"]
        raise ModelError(str(error.get("message", "")), raw=error.get("raw"), status=error.get("status"))
    return response
