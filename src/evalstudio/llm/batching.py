"""Embedding many texts at once: calls that wait at the same moment share one request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ..evaluators.contract import Embedder

_PAUSE_SECONDS = 0.002
# The statuses by which a server says that it is the request it does not like.
_REFUSED = (400, 413, 422)


@dataclass(slots=True)
class _Waiting:
    texts: Sequence[str]
    future: asyncio.Future[Sequence[Sequence[float]]]


class BatchingEmbedder:
    """Gathers what is asked within a moment and asks the embedder behind it once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._waiting: dict[str | None, list[_Waiting]] = {}
        self._flushes: set[asyncio.Task[None]] = set()

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> Sequence[Sequence[float]]:
        entry = _Waiting(texts, asyncio.get_running_loop().create_future())
        queue = self._waiting.setdefault(model, [])
        queue.append(entry)
        if len(queue) == 1:
            task = asyncio.create_task(self._flush(model))
            self._flushes.add(task)
            task.add_done_callback(self._flushes.discard)
        return await entry.future

    async def _flush(self, model: str | None) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        queue = [entry for entry in self._waiting.pop(model, []) if not entry.future.done()]
        error = await self._settle(queue, model)
        if error is None:
            return
        if len(queue) > 1 and getattr(error, "status", None) in _REFUSED:
            # One text may be what the server refuses; it must not cost the others their answer.
            await asyncio.gather(*(self._settle_alone(entry, model) for entry in queue))
        else:
            _fail(queue, error)

    async def _settle_alone(self, entry: _Waiting, model: str | None) -> None:
        error = await self._settle([entry], model)
        if error is not None:
            _fail([entry], error)

    async def _settle(self, queue: list[_Waiting], model: str | None) -> Exception | None:
        """Ask once for all and hand the vectors out, or say what went wrong."""
        texts = [text for entry in queue for text in entry.texts]
        try:
            vectors = await self._embedder.embed(texts, model=model)
        except Exception as error:
            return error
        if len(vectors) != len(texts):
            return ValueError(f"the embedding model gave {len(vectors)} vectors for {len(texts)} texts")
        start = 0
        for entry in queue:
            end = start + len(entry.texts)
            if not entry.future.done():
                entry.future.set_result(vectors[start:end])
            start = end
        return None


def _fail(queue: list[_Waiting], error: Exception) -> None:
    for entry in queue:
        if not entry.future.done():
            entry.future.set_exception(error)
