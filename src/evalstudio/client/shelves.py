"""Personas, scenarios, connectors and evals on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from ..project.entities import Stored, StoredConnector, StoredEval, StoredPersona, StoredScenario

New = TypeVar("New", bound=BaseModel)
Kept = TypeVar("Kept", StoredPersona, StoredScenario, StoredConnector, StoredEval)

_OWN = set(Stored.model_fields)


class Caller(Protocol):
    """What a shelf needs of the client: calls, and lists that come in pages."""

    async def call(
        self,
        method: Literal["GET", "POST", "PUT", "DELETE"],
        path: str,
        *,
        body: Any = None,
        key: str | None = None,
        if_match: str | None = None,
    ) -> Any: ...
    def pages(self, path: str, filters: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]: ...


class AsyncShelf(Generic[New, Kept]):
    """The definitions of one kind on a server."""

    def __init__(self, client: Caller, noun: str, new: type[New], kept: type[Kept]) -> None:
        self._client = client
        self._path = f"/api/{noun}"
        self._new = new
        self._kept = kept

    async def list(self, text: str | None = None) -> list[Kept]:
        """All of them, or those with this text in their name."""
        found = self._client.pages(self._path, {"text": text})
        return [self._kept.model_validate(item) async for item in found]

    async def get(self, wanted: str) -> Kept:
        return self._kept.model_validate(await self._client.call("GET", f"{self._path}/{wanted}"))

    async def create(self, given: New | Mapping[str, Any], *, key: str | None = None) -> Kept:
        """Make one. The same ``key`` given again makes nothing new."""
        answer = await self._client.call("POST", self._path, body=self._body(given), key=key)
        return self._kept.model_validate(answer)

    async def update(
        self, wanted: str, given: New | Mapping[str, Any], *, version: int | None = None
    ) -> Kept:
        """Replace one; with ``version`` only if it is still that version."""
        match = None if version is None else f'"v{version}"'
        path = f"{self._path}/{wanted}"
        answer = await self._client.call("PUT", path, body=self._body(given), if_match=match)
        return self._kept.model_validate(answer)

    async def delete(self, wanted: str) -> None:
        await self._client.call("DELETE", f"{self._path}/{wanted}")

    def _body(self, given: New | Mapping[str, Any]) -> dict[str, Any]:
        model = given if isinstance(given, BaseModel) else self._new.model_validate(dict(given))
        return model.model_dump(mode="json", by_alias=True, exclude=_OWN)
