"""What importing the package costs: next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "openai",
    "anthropic",
    "google.genai",
    "numpy",
    "pydantic_ai",
    "wordllama",
    "httpx2",
    "torch",
    "aiohttp",
)


def loaded_after(code: str) -> set[str]:
    report = f"import sys\n{code}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(eval(done.stdout))


def test_importing_loads_no_provider() -> None:
    settings = "LlmSettings.model_validate({'apiKey': 'k', 'models': {'evaluation': 'm'}})"
    assert loaded_after(f"from evalstudio.llm import *\nllm = Llm({settings})\nllm.usage") == set()


OPENING = """
from evalstudio.llm import LlmSettings
from evalstudio.llm.client import open_connection
open_connection(LlmSettings.model_validate({{"provider": {0!r}, "apiKey": "k"}}), {0!r})
"""


def test_openais_protocol_needs_no_library_of_a_provider() -> None:
    assert loaded_after(OPENING.format("openai")) == {"aiohttp"}


@pytest.mark.parametrize(("provider", "module"), [("anthropic", "anthropic"), ("google", "google.genai")])
def test_only_the_provider_in_use_is_loaded(provider: str, module: str) -> None:
    loaded = loaded_after(OPENING.format(provider)) - {"numpy", "pydantic_ai", "httpx2", "aiohttp"}
    assert loaded == {module}


def test_local_embeddings_need_no_provider_and_no_torch() -> None:
    code = (
        "import asyncio\nfrom evalstudio.llm import LocalEmbedder\n"
        "assert len(asyncio.run(LocalEmbedder().embed(['hello']))[0]) > 100"
    )
    assert loaded_after(code) == {"wordllama", "numpy"}
