"""A project as the commands see it: the one at hand, or one on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..client import AsyncClient
    from ..connectors.session import ConnectorCheck
    from ..execution.workspace import Workspace
    from ..project.documents import Document, Kind
    from ..project.marked import Marked
    from ..project.planning import Stock
    from ..storage.contract import Records


class Project(Protocol):
    """Definitions by name, and the records of what was run."""

    @property
    def records(self) -> Records: ...
    async def create(self, kind: Kind, given: Marked) -> Any: ...
    async def update(self, kind: Kind, name: str, given: Marked) -> Any: ...
    async def delete(self, kind: Kind, name: str) -> str: ...
    async def probe(self, name: str) -> ConnectorCheck: ...


@dataclass(frozen=True, slots=True)
class LocalProject:
    """The project at hand."""

    workspace: Workspace

    @property
    def records(self) -> Records:
        return self.workspace.store

    async def create(self, kind: Kind, given: Marked) -> Any:
        from ..execution.defining import create

        return await create(self.workspace, kind, given)

    async def update(self, kind: Kind, name: str, given: Marked) -> Any:
        from ..execution.defining import update

        return await update(self.workspace, kind, name, given)

    async def delete(self, kind: Kind, name: str) -> str:
        from ..execution.defining import delete

        return await delete(self.workspace, kind, name)

    async def probe(self, name: str) -> ConnectorCheck:
        from ..execution.probing import probe

        return await probe(self.workspace, name)


class RemoteProject:
    """A project on a server, which checks what it is given."""

    def __init__(self, client: AsyncClient) -> None:
        from ..client.records import RemoteRecords

        self.client = client
        self.records: Records = RemoteRecords(client)

    async def create(self, kind: Kind, given: Marked) -> Any:
        from ..execution.defining import read_given

        stock = await self._stock()
        return await self._shelf(kind).create(_entity(stock, read_given(stock, kind, given)))

    async def update(self, kind: Kind, name: str, given: Marked) -> Any:
        from ..execution.defining import changed, find

        stock = await self._stock()
        known = find(stock, kind, name)
        kept = stock.entity(known.key)
        entity = _entity(stock, changed(stock, known, given))
        return await self._shelf(kind).update(kept.id, entity, version=kept.version)

    async def delete(self, kind: Kind, name: str) -> str:
        from ..execution.defining import find

        stock = await self._stock()
        known = find(stock, kind, name)
        await self._shelf(kind).delete(stock.entity(known.key).id)
        return known.name

    async def probe(self, name: str) -> ConnectorCheck:
        from ..connectors.session import ConnectorCheck
        from ..execution.defining import find

        stock = await self._stock()
        wanted = stock.entity(find(stock, "connector", name).key).id
        found = await self.client.test_connector(wanted)
        return ConnectorCheck(found["success"], found["latencyMs"], found["response"], found["error"])

    async def _stock(self) -> Stock:
        from ..execution.applying import stock_of

        return await stock_of(self.records)

    def _shelf(self, kind: Kind) -> Any:
        return getattr(self.client, f"{kind}s")


def _entity(stock: Stock, document: Document) -> Any:
    """What to send of a document: names back to ids, after a look at whether they are there."""
    from ..project.documents import KINDS, check_references, raise_problems
    from ..project.planning import entity_of

    known: dict[Kind, list[str]] = {kind: [entity.name for entity in stock.of_kind(kind)] for kind in KINDS}
    raise_problems(check_references([document], known))
    ids = {key: entity.id for key, entity in stock.entities.items()}
    return entity_of(document, ids)
