"""Definitions as the API handles them: checked on the way in, sealed where kept, masked on the way out."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from ..base.problems import InvalidInput, Problem
from ..conversation.definitions import Persona, Scenario
from ..project.entities import Connector, Stored, StoredConnector, StoredEval, StoredPersona, StoredScenario
from ..project.secrets import check_references, masked, refuse_sealed, restored
from ..project.validation import check_connector, check_scenario
from ..storage.contract import DefinitionKind, Filters, IdempotencyKey, Page
from ..storage.errors import NotFound, VersionConflict
from .errors import ApiError
from .requests import Paging, Studio, expected_version

S = TypeVar("S", StoredPersona, StoredScenario, StoredConnector, StoredEval)

_TRIES = 5
_OWN = set(Stored.model_fields)
_WITH_SECRETS = ("persona", "connector")


class Shelf(Generic[S]):
    """The definitions of one kind."""

    def __init__(self, kind: DefinitionKind, stored: type[S]) -> None:
        self.kind: DefinitionKind = kind
        self.stored = stored

    async def page(self, studio: Studio, filters: Filters, paging: Paging) -> Page[S]:
        page = await studio.store.list_of(self.kind, filters, cursor=paging.cursor, limit=paging.limit)
        shown = [self.shown(cast(S, item)) for item in page.items]
        return Page(shown, page.cursor)

    async def get(self, studio: Studio, wanted: str) -> S:
        return self.shown(await self.kept(studio, wanted))

    async def kept(self, studio: Studio, wanted: str) -> S:
        """As it is kept, with sealed secrets."""
        return cast(S, await studio.store.get(self.kind, wanted))

    async def create(self, studio: Studio, given: BaseModel, once: IdempotencyKey | None) -> S:
        fields = await self._accepted(studio, given, None)
        try:
            made = await studio.store.create(self.stored.model_validate(fields), once=once)
        except NotFound as error:
            raise ApiError(
                409, f"What this idempotency key made was deleted since: {error} Choose a new key."
            ) from None
        return self.shown(cast(S, made))

    async def replace(self, studio: Studio, wanted: str, given: BaseModel, if_match: str | None) -> S:
        expected = expected_version(if_match)
        for tries_left in reversed(range(_TRIES)):
            known = await self.kept(studio, wanted)
            fields = await self._accepted(studio, given, known)
            entity = self.stored.model_validate(fields | {"id": wanted})
            try:
                # Masks were restored from this version: a newer one may hold other secrets.
                kept = await studio.store.update(entity, expected=expected or known.version)
            except VersionConflict:
                if expected is not None or not tries_left:
                    raise
            else:
                return self.shown(cast(S, kept))
        raise AssertionError("the last try returns or raises")

    async def delete(self, studio: Studio, wanted: str, if_match: str | None) -> None:
        await studio.store.delete(self.kind, wanted, expected=expected_version(if_match))

    def shown(self, entity: S) -> S:
        if self.kind not in _WITH_SECRETS:
            return entity
        return self.stored.model_validate(masked(entity.model_dump(by_alias=True)))

    async def _accepted(self, studio: Studio, given: BaseModel, known: S | None) -> dict[str, Any]:
        """What is to be kept: masks restored, everything checked, secrets sealed."""
        fields = given.model_dump(mode="json", by_alias=True)
        if self.kind in _WITH_SECRETS:
            refuse_sealed(fields)
            check_references(fields)
            before = None if known is None else known.model_dump(mode="json", by_alias=True, exclude=_OWN)
            fields = restored(fields, before)
        await check(studio, given)
        return studio.workspace.box.seal(fields) if self.kind in _WITH_SECRETS else fields


async def check(studio: Studio, given: BaseModel) -> None:
    """Whether a definition fits what is registered here."""
    if isinstance(given, Connector):
        check_connector(given, studio.workspace.registry)
    elif isinstance(given, Scenario):
        people = [cast(Persona, await _persona(studio, one)) for one in given.persona_ids]
        # Saving needs no model, running does; and a file of cases may be long.
        await asyncio.to_thread(
            check_scenario,
            given,
            studio.workspace.registry,
            studio.workspace.folder,
            personas=people,
            has_model=True,
        )


async def _persona(studio: Studio, wanted: str) -> object:
    try:
        return await studio.store.get("persona", wanted)
    except NotFound as error:
        raise InvalidInput(Problem(str(error), ("personaIds",))) from None


PERSONAS = Shelf("persona", StoredPersona)
SCENARIOS = Shelf("scenario", StoredScenario)
CONNECTORS = Shelf("connector", StoredConnector)
EVALS = Shelf("eval", StoredEval)
