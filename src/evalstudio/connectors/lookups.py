"""Where an agent is and what it is sent: references looked up, secrets known.

Most connectors refer to nothing in the environment; what was found out for one run then holds for all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..base.addresses import shown_address
from ..base.lazy_dataclass import dataclass
from ..base.paths import texts_in
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction, secrets_sent
from ..base.references import resolve, values_of
from .contract import ConnectorSettings, Headers, merge_headers
from .secrets import config_data, secrets_of


@dataclass(slots=True, frozen=True)
class AgentFacts:
    """Where an agent is and what it is sent, all references looked up, and what must be hidden of that."""

    settings: ConnectorSettings[Any]
    extra: Headers
    headers: Headers
    address: str
    own_accept: bool
    redact: Redaction
    answers: Redaction
    looked_up: bool


def facts_of(settings: ConnectorSettings[Any], extra: Headers, secrets: Collection[str]) -> AgentFacts:
    """What a session must know before its first call; ``UnsetVariable`` where a reference leads nowhere."""
    key = (frozenset(extra.items()), frozenset(secrets))
    known = settings.known.get(key)
    if known is None:
        known = _look_up(settings, extra, secrets)
        if not known.looked_up:
            settings.known[key] = known
    return known


def _look_up(settings: ConnectorSettings[Any], extra: Headers, secrets: Collection[str]) -> AgentFacts:
    base_url = resolve(settings.base_url.strip(), "baseUrl")
    own, over = _resolved(settings.headers), _resolved(extra)
    sent = merge_headers(own, over)
    template = [text for _, text in texts_in(getattr(settings.config, "request_template", None))]
    written = (settings.base_url, *settings.headers.values(), *extra.values())
    shared = {secret for secret in secrets if len(secret) >= SHORTEST_IN_ANSWERS}
    in_config = (text for _, text in texts_in(config_data(settings.config)))
    return AgentFacts(
        settings=replace(settings, base_url=base_url, headers=own),
        extra=over,
        headers=merge_headers({"Content-Type": "application/json", "Accept": "application/json"}, sent),
        address=shown_address(settings.base_url.strip()),
        own_accept=any(name.lower() == "accept" for name in sent),
        redact=Redaction.of(values_of(*written, *template) | shared | secrets_sent(base_url, own | over)),
        answers=Redaction.of(shared | secrets_of(settings, extra), shortest=SHORTEST_IN_ANSWERS),
        looked_up=any("${" in text for text in (*written, *template, *in_config)),
    )


def _resolved(headers: Headers) -> dict[str, str]:
    return {name: resolve(value, f"the header {name}") for name, value in headers.items()}
