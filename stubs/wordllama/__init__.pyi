from pathlib import Path
from typing import Protocol

__file__: str

class _Vectors(Protocol):
    def tolist(self) -> list[list[float]]: ...

class WordLlamaInference:
    def embed(self, texts: list[str], norm: bool = False) -> _Vectors: ...

class WordLlama:
    @classmethod
    def load(cls, *, cache_dir: Path | str | None = None, disable_download: bool = False) -> WordLlamaInference: ...
