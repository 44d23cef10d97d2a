"""Vectors for texts: the local model in worker threads; calls waiting at the same moment share a request."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from ..base.concurrency import blocking
from ..base.extras import needs_extra
from ..base.json_text import whole_text
from ..base.lazy_dataclass import dataclass
from ..evaluators.contract import Embedder
from .settings import ModelError

if TYPE_CHECKING:
    from wordllama import WordLlamaInference

LOCAL_MODEL = "wordllama"

_MOST_TEXTS = 64
_MOST_CHARACTERS = 200_000
# The local model averages over a text's words; beyond this many characters the average stands still.
_LONGEST_TEXT = 100_000

_VECTORS = TypeAdapter(list[list[FiniteFloat]])

_loading = threading.Lock()


class LocalEmbedder:
    """Embeds with the local model alone, for use without any provider."""

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        if model not in (None, LOCAL_MODEL):
            raise ModelError(
                f'the embedding model "{model}" needs a provider: set llmSettings, or use "{LOCAL_MODEL}"'
            )
        return await embed_locally(texts)


def embedder_of(model: object) -> Embedder:
    """A model's own embeddings where it has any; never silently another's."""
    return cast(Embedder, model) if callable(getattr(model, "embed", None)) else LocalEmbedder()


async def embed_locally(texts: Sequence[str]) -> list[list[float]]:
    """Vectors by the local model, in a worker thread so that the event loop stays free."""
    vectors: list[list[float]] = []
    for batch in batches([whole_text(text[:_LONGEST_TEXT]) for text in texts]):
        vectors += await blocking.run(lambda batch=batch: _embed(batch))
    return vectors


def _embed(texts: list[str]) -> list[list[float]]:
    with _loading:
        model = _local_model()
    return model.embed(texts).tolist()


@cache
def _local_model() -> WordLlamaInference:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        with needs_extra("embeddings", "the local embedding model", ModelError):
            import wordllama
    finally:
        # The package sets up logging for the whole program when it is imported.
        root.handlers[:] = handlers
        root.setLevel(level)
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in groups that are neither many nor large."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _MOST_TEXTS or size + len(text) > _MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def read_vectors(sent: object, texts: Sequence[str], place: str) -> list[list[float]]:
    """One finite vector of the same length per text, or an error: providers' libraries do not look."""
    try:
        vectors = _VECTORS.validate_python(sent)
    except ValidationError:
        raise ModelError(f"{place} sent vectors that are not lists of finite numbers") from None
    if len(vectors) != len(texts):
        raise ModelError(f"{place} sent {len(vectors)} vectors for {len(texts)} texts")
    sizes = {len(vector) for vector in vectors}
    if len(sizes) > 1 or 0 in sizes:
        raise ModelError(f"{place} sent vectors of different or no length")
    return vectors


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
        await self._settle(
            [entry for entry in self._waiting.pop(model, []) if not entry.future.done()], model
        )

    async def _settle(self, queue: list[_Waiting], model: str | None) -> None:
        """Ask once for all and hand the vectors out, or the error."""
        texts = [text for entry in queue for text in entry.texts]
        try:
            vectors = await self._embedder.embed(texts, model=model)
            if len(vectors) != len(texts):
                raise ValueError(f"the embedding model gave {len(vectors)} vectors for {len(texts)} texts")
        except Exception as error:
            if len(queue) > 1 and getattr(error, "status", None) in _REFUSED:
                # One text may be what the server refuses; it must not cost the others their answer.
                await asyncio.gather(*(self._settle([entry], model) for entry in queue))
            for entry in queue:
                if not entry.future.done():
                    entry.future.set_exception(error)
            return
        rest = iter(vectors)
        for entry in queue:
            own = list(islice(rest, len(entry.texts)))
            if not entry.future.done():
                entry.future.set_result(own)
