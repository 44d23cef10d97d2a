"""Providers with a protocol of their own, by their libraries. Importing this loads what those share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import httpx2
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ..base.lazy_dataclass import dataclass
from ..base.redaction import Redaction
from ..messages import TokensUsage
from .connections import Question, Reply
from .limits import Failure
from .native_http import explain, open_client
from .native_messages import from_provider, parameters, to_provider
from .settings import Access, LlmSettings, ModelError, Role, Target, find_access

MakeModel = Callable[[str], Model[Any]]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A model with what it takes, found out once."""

    model: Model[Any]
    takes_schema: bool
    options: dict[Role, ModelSettings]


class NativeConnection:
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
        self._make = _MAKERS[provider](access, self._http)
        self._models: dict[str, _Opened] = {}

    def takes_schema(self, name: str) -> bool:
        """Whether the model takes a JSON Schema for its reply."""
        return self._model(name).takes_schema

    async def ask(self, question: Question) -> Reply:
        opened = self._model(question.target.model)
        response = await model_request(
            opened.model,
            to_provider(question.messages),
            model_settings=opened.options.get(question.role),
            model_request_parameters=parameters(question.schema, question.structured),
            instrument=False,
        )
        return from_provider(response)

    async def embed(self, target: Target, texts: list[str]) -> tuple[object, TokensUsage]:
        raise ModelError(
            f"{target.provider} is not used for embeddings here: set llmSettings.models.embedding to "
            '"wordllama", to "openai:<model>" or to a model of an OpenAI-compatible server'
        )

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
    return not profile.get("anthropic_disallows_sampling_settings")


def _options(settings: LlmSettings, temperature: float | None) -> ModelSettings:
    options = {"temperature": temperature, "seed": settings.seed, "max_tokens": settings.max_tokens}
    return cast(ModelSettings, {name: value for name, value in options.items() if value is not None})


def _client_options(access: Access, http: httpx2.AsyncClient) -> dict[str, Any]:
    options = {"http_client": http, "timeout": http.timeout, "max_retries": 0}
    return {"api_key": access.api_key, "base_url": access.base_url, **options}


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


_MAKERS = {"anthropic": _anthropic, "google": _google}
