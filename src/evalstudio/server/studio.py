"""What every route has at hand: the open project, how the server was started, and what runs beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request

from ..storage.contract import Store
from .policy import ServerPolicy

if TYPE_CHECKING:
    from ..execution.workspace import Workspace
    from .hub import EventHub
    from .processing import Processing


@dataclass(slots=True)
class Studio:
    """An open project behind a server."""

    workspace: Workspace
    policy: ServerPolicy
    hub: EventHub
    processing: Processing

    @property
    def store(self) -> Store:
        return self.workspace.store


async def _studio(request: Request) -> Studio:
    return cast(Studio, request.app.state.studio)


StudioDep = Annotated[Studio, Depends(_studio)]
