"""Answers that need no provider, from a cassette or the cache; and new ones, kept in both.

A whole answer is kept, after retries and repair, so that it is found again whatever it took to get it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from ..cassettes import Cassette
from ..evaluators.contract import Answer
from ..messages import TokensUsage
from .cache import AnswerCache
from .errors import ModelError, redact
from .reading import InvalidAnswer
from .usage import RoleUsage

T = TypeVar("T")
Vectors = list[list[float]]


class Recall:
    """What an ``Llm`` remembers: the cassette alone where one is replayed, else the cache first."""

    def __init__(self, cache: AnswerCache | None, cassette: Cassette | None) -> None:
        self._cache = None if cassette is not None and cassette.replaying else cache
        self._cassette = cassette
        self._secrets: set[str] = set()

    @property
    def active(self) -> bool:
        return self._cache is not None or self._cassette is not None

    def hide(self, secrets: Sequence[str | None]) -> None:
        """Keep providers' keys out of everything that is kept."""
        self._secrets |= {secret for secret in secrets if secret}
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
        kept = await self._cache.get(key) if self._cache else None
        found = _cached(kept, read) if kept else None
        if kept is not None and found is not None:
            tally.cached += 1
            self._keep(request, kept)
            return found
        try:
            answer = await ask()
        except ModelError as error:
            self._keep(request, _of_error(error))
            raise
        response = {"text": answer.raw, "usage": answer.usage.model_dump()}
        if self._cache:
            await self._cache.put(key, response | {"text": self._blotted(answer.raw)})
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
            found = [_or_raise(self._cassette.find("model", request_for(text))) for text in texts]
            tally.replayed += len(found)
            return [response["vector"] for response in found]
        known = await self._cached_vectors(texts, request_for)
        tally.cached += sum(1 for text in texts if text in known)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        try:
            asked = await ask(missing) if missing else []
        except ModelError as error:
            for text in missing:
                self._keep(request_for(text), _of_error(error))
            raise
        for text, vector in zip(missing, asked, strict=True):
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
            kept = await self._cache.get(self._cache.key(request_for(text), counted=False)) or {}
            vector: Any = kept.get("vector")
            if isinstance(vector, list) and vector:
                known[text] = vector
        return known

    def _keep(self, request: Mapping[str, Any], response: Mapping[str, Any], *, once: bool = False) -> None:
        if self._cassette is not None:
            self._cassette.keep("model", request, response, once=once)

    def _blotted(self, text: str) -> str:
        for secret in self._secrets:
            text = redact(text, secret)
        return text


def _cached(kept: Mapping[str, Any], read: Callable[[str], T]) -> Answer[T] | None:
    """A kept answer that can still be read; it uses nothing."""
    text = kept.get("text")
    try:
        return Answer(read(text), TokensUsage(), text) if isinstance(text, str) else None
    except InvalidAnswer:
        return None


def _replayed(response: Mapping[str, Any], read: Callable[[str], T], cassette: Cassette) -> Answer[T]:
    """A recorded answer as it was then, with what it had used: a replayed run tells the same."""
    try:
        text = str(response["text"])
        return Answer(read(text), TokensUsage.model_validate(response.get("usage") or {}), text)
    except (InvalidAnswer, ValidationError, KeyError) as error:
        raise ModelError(f"an answer recorded in {cassette.path} cannot be used: {error}") from None


def _of_error(error: ModelError) -> dict[str, Any]:
    return {"error": {"message": str(error), "raw": error.raw, "status": error.status}}


def _or_raise(response: dict[str, Any]) -> dict[str, Any]:
    if isinstance(response.get("error"), dict):
        found: Mapping[str, Any] = response["error"]
        raise ModelError(str(found.get("message", "")), raw=found.get("raw"), status=found.get("status"))
    return response
