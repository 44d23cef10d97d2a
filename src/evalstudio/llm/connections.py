"""Open connections to providers. Importing this loads the provider library; each provider's own on first use.

A connection asks once and lets errors through; trying again and reading the reply are the client's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx2
from pydantic import BaseModel
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ..base.redaction import Redaction
from ..messages import Message, TokensUsage
from .limits import Failure
from .settings import Access, LlmSettings, ModelError, Role, Structured, Target, find_access
from .transport import explain, open_client
from .wire import Reply, from_provider, parameters, to_provider

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MakeModel = Callable[[str], Model[Any]]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A model with what it takes, found out once."""

    model: Model[Any]
    takes_schema: bool
    options: dict[Role, ModelSettings]


class Connection:
    """One provider with its pooled HTTP client and the models asked for so far."""

    def __init__(self, settings: LlmSettings, provider: str) -> None:
        access = find_access(settings, provider)
        most = settings.concurrency
        self._http = open_client(
            access.base_url,
            settings.timeout_seconds,
            settings.max_response_bytes,
            most.evaluation + most.persona + most.embedding,
        )
        self.secret = access.secret
        self.redact = Redaction.of([access.secret], shortest=1)
        self._settings = settings
        self._openai: AsyncOpenAI | None = None
        match provider:
            case "anthropic":
                self._make = _anthropic(access, self._http)
            case "google":
                self._make = _google(access, self._http)
            case _:
                self._openai = _openai_client(access, self._http)
                self._make = _openai(provider, self._openai)
        self._models: dict[str, _Opened] = {}

    def takes_schema(self, name: str) -> bool:
        """Whether the model takes a JSON Schema for its reply."""
        return self._model(name).takes_schema

    async def ask(
        self,
        target: Target,
        messages: Sequence[Message],
        schema: type[BaseModel] | None,
        structured: Structured,
        role: Role,
    ) -> Reply:
        opened = self._model(target.model)
        response = await model_request(
            opened.model,
            to_provider(messages),
            model_settings=opened.options.get(role),
            model_request_parameters=parameters(schema, structured),
            instrument=False,
        )
        return from_provider(response)

    async def embed(self, target: Target, texts: list[str]) -> tuple[list[list[float]], TokensUsage]:
        if self._openai is None:
            raise ModelError(
                f"{target.provider} is not used for embeddings here: set llmSettings.models.embedding to "
                '"wordllama", to "openai:<model>" or to a model of an OpenAI-compatible server'
            )
        response = await self._openai.embeddings.create(
            model=target.model, input=texts, encoding_format="float"
        )
        vectors = [item.embedding for item in sorted(response.data, key=lambda item: item.index)]
        usage = TokensUsage.model_validate(response.usage.model_dump() if response.usage else {})
        return vectors, usage

    def explain(self, error: Exception, target: Target) -> Failure:
        return explain(error, target, self.redact, self._settings.timeout_seconds)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _model(self, name: str) -> _Opened:
        opened = self._models.get(name)
        if opened is None:
            model = self._make(name)
            profile = cast(Mapping[str, Any], model.profile)
            temperature = self._settings.temperature if takes_temperature(profile) else None
            options: dict[Role, ModelSettings] = {
                "evaluation": _options(self._settings, temperature.evaluation if temperature else None),
                "persona": _options(self._settings, temperature.persona if temperature else None),
            }
            opened = _Opened(model, bool(profile.get("supports_json_schema_output")), options)
            self._models[name] = opened
        return opened


def takes_temperature(profile: Mapping[str, Any]) -> bool:
    """Whether a model may be sent a temperature: models that reason refuse it."""
    if profile.get("anthropic_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    may_rest = profile.get("openai_supports_reasoning_effort_none") if efforts is None else "none" in efforts
    return bool(may_rest) and not profile.get("thinking_enabled_by_default")


def _options(settings: LlmSettings, temperature: float | None) -> ModelSettings:
    options = {"temperature": temperature, "seed": settings.seed, "max_tokens": settings.max_tokens}
    return cast(ModelSettings, {name: value for name, value in options.items() if value is not None})


def _openai_client(access: Access, http: httpx2.AsyncClient) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    return AsyncOpenAI(**_client_options(access, http))


def _client_options(access: Access, http: httpx2.AsyncClient) -> dict[str, Any]:
    options = {"http_client": http, "timeout": http.timeout, "max_retries": 0}
    return {"api_key": access.api_key, "base_url": access.base_url, **options}


def _openai(provider: str, client: AsyncOpenAI) -> MakeModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    access = (
        OpenAIProvider(openai_client=client)
        if provider == "openai"
        else OpenAICompatibleProvider(provider, openai_client=client)
    )
    # The client loads the rest of its library on first use: here, in a worker thread, not on the event loop.
    _ = client.chat.completions
    return lambda name: OpenAIChatModel(name, provider=access)


def _anthropic(access: Access, http: httpx2.AsyncClient) -> MakeModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(anthropic_client=AsyncAnthropic(**_client_options(access, http)))
    return lambda name: AnthropicModel(name, provider=provider)


def _google(access: Access, http: httpx2.AsyncClient) -> MakeModel:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=access.api_key, base_url=access.base_url, http_client=http)
    return lambda name: GoogleModel(name, provider=provider)
