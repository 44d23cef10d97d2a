"""Closing production conversations: what has been quiet is put together and handed over to be judged.

Several servers on one database share the work. A conversation is claimed under a lease, and marked as handed
over only once whoever judges it has taken it; until then it is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol, TypeVar, cast

from ..base.concurrency import blocking, set_within
from ..base.outages import riding_out
from ..base.text import excerpt
from ..base.times import milliseconds_of
from ..messages import TokensUsage
from ..recordings.conversation import RecordedConversation
from ..recordings.otlp import Assembled, assemble
from ..storage.errors import DatabaseReplaced, StorageError, StorageUnavailable
from ..storage.production import ClaimedConversation
from .receiving import span_of_body
from .workers import has_died, new_worker_id
from .workspace import Workspace

log = logging.getLogger("evalstudio")
T = TypeVar("T")

LEASE_SECONDS = 120.0
_AT_ONCE = 4
_CLAIMED_AT_ONCE = 16
_LONGEST_LOOK_SECONDS = 1.0
_PRUNE_SECONDS = 600.0
_TAKE_OVER_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 600.0
_LONGEST_TITLE = 120


class ConversationHandler(Protocol):
    """Judges a complete conversation; the same revision may come twice and must count once."""

    def __call__(
        self,
        workspace: Workspace,
        conversation: RecordedConversation,
        attributes: Mapping[str, Any],
        *,
        revision: int,
    ) -> Awaitable[None]: ...


async def read_conversation(
    workspace: Workspace, conversation_id: str, name: str, refused: int = 0
) -> Assembled:
    """A stored conversation, put together from its spans."""
    bodies = await workspace.store.bodies_of(conversation_id)
    missing = [f"{refused:,} spans were refused because there are too many"] if refused else []

    def work() -> Assembled:
        return assemble(
            [span_of_body(body) for body in bodies],
            identity=conversation_id,
            origin=f"production conversation {name}",
            missing=missing,
        )

    return await blocking.run(work)


class IntakeTask:
    """Closes conversations until told to stop."""

    def __init__(
        self,
        workspace: Workspace,
        handler: ConversationHandler | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self.worker_id = new_worker_id()
        self.problem: str | None = None
        self._workspace = workspace
        self._store = workspace.store
        self._settings = workspace.config.production
        self._handler = handler
        self._lease_ms = int(lease_seconds * 1000)
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done() and self.problem is None

    def start(self) -> None:
        if self._settings.enabled and self._task is None:
            self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """End; what was claimed and not finished is tried again by whoever comes next."""
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            with riding_out(0.0):
                await asyncio.gather(
                    self._store.release_conversations([self.worker_id]), return_exceptions=True
                )

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        pause = min(_LONGEST_LOOK_SECONDS, self._settings.quiet_seconds / 4)
        pruned = taken_over = float("-inf")
        while not self._stop.is_set():
            count = 0
            try:
                if clock() - taken_over > _TAKE_OVER_SECONDS or self.problem is not None:
                    await self._take_over()
                    taken_over = clock()
                count = await self.step()
                if clock() - pruned > _PRUNE_SECONDS:
                    await self._store.prune_conversations(timedelta(days=self._settings.retention_days))
                    pruned = clock()
                self.problem = None
            except StorageError as error:
                self._tell(str(error))
            except Exception as error:
                log.exception("Closing conversations failed and goes on")
                self.problem = f"{type(error).__name__}: {error}"
            if not count:
                await set_within(self._stop, pause)

    def _tell(self, problem: str) -> None:
        if self.problem is None:
            log.error("Conversations cannot be closed at the moment: %s", problem)
        self.problem = problem

    async def _take_over(self) -> None:
        """What processes held that died on this machine need not wait for their leases.

        Nor what this one holds: between two steps it works on nothing, but the last may have failed.
        """
        one_machine = self._store.database.on_one_machine
        holders = await self._store.conversation_holders()
        dead = [one for one in holders if one == self.worker_id or has_died(one, one_machine=one_machine)]
        if dead:
            await self._store.release_conversations(dead)

    async def step(self) -> int:
        """Close what has been quiet, and hand over what is complete; how many conversations that were."""
        quiet = int(self._settings.quiet_seconds * 1000)
        claimed = await self._store.claim_conversations(
            self.worker_id, quiet, _CLAIMED_AT_ONCE, self._lease_ms
        )
        closed = await _all_done(self._guarded(one, self._put_together(one)) for one in claimed)
        pairs = [(one, whole) for one, whole in zip(claimed, closed, strict=True) if whole is not None]
        pairs.sort(key=lambda pair: _started_ms(pair[1]) or 0)
        joined = [await self._goes_on(*pair) for pair in pairs]
        # What has become longer is closed again, with all of it.
        left = [
            pair
            for pair, into in zip(pairs, joined, strict=True)
            if into is None and pair[0].id not in joined
        ]
        await _all_done(self._guarded(one, self._hand_over(one, whole)) for one, whole in left)
        return len(claimed)

    async def _guarded(self, claimed: ClaimedConversation, work: Awaitable[T]) -> T | None:
        """What goes wrong with one conversation puts off that one, and is tried again."""
        try:
            async with self._places:
                return await work
        except (StorageUnavailable, DatabaseReplaced):
            raise
        except Exception as error:
            log.exception("Conversation %s could not be handed over", claimed.id)
            seconds = min(_FIRST_PAUSE_SECONDS * 2 ** min(claimed.attempts, 10), _LONGEST_PAUSE_SECONDS)
            problem = f"{type(error).__name__}: {error}"
            await self._store.put_off(claimed.id, claimed.revision, problem, int(seconds * 1000))
            return None

    async def _put_together(self, claimed: ClaimedConversation) -> Assembled | None:
        """The conversation; none where more has come meanwhile, for it is closed again then."""
        assembled = await read_conversation(self._workspace, claimed.id, claimed.name, claimed.refused)
        summary = summary_of(assembled)
        is_current = await self._store.describe_conversation(claimed.id, claimed.revision, summary)
        return assembled if is_current else None

    async def _goes_on(self, claimed: ClaimedConversation, assembled: Assembled) -> str | None:
        """Into which conversation it was put, whose history it went on with."""
        if assembled.head is None or claimed.has_name or claimed.revision > 1:
            return None
        return await self._store.continue_conversation(claimed.id, assembled.head)

    async def _hand_over(self, claimed: ClaimedConversation, assembled: Assembled) -> None:
        if self._handler is not None:
            conversation, attributes = assembled.conversation, assembled.attributes
            await self._handler(self._workspace, conversation, attributes, revision=claimed.revision)
        await self._store.hand_over(claimed.id, claimed.revision)


async def _all_done(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all of them; the first error is raised once none of them is at work any more."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast(list[T], results)


def summary_of(assembled: Assembled) -> dict[str, Any]:
    """What lists show of a conversation."""
    conversation = assembled.conversation
    usages = [turn.tokens_usage for turn in conversation.turns if turn.tokens_usage is not None]
    total = sum(usages, TokensUsage()).total_tokens if usages else None
    first = conversation.turns[0].user_message if conversation.turns else None
    return {
        "started": _started_ms(assembled),
        "turn_count": len(conversation.turns),
        "total_tokens": total,
        "agent": conversation.agent,
        "title": excerpt(first.text, _LONGEST_TITLE) if first is not None else None,
        "error": conversation.error,
        "attributes": assembled.attributes,
        "tail": assembled.tail,
    }


def _started_ms(assembled: Assembled) -> int | None:
    started = assembled.conversation.started
    return None if started is None else milliseconds_of(started)
