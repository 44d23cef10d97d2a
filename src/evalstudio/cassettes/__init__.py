"""Cassettes: exchanges with models and agents, recorded once and played back without either."""

from __future__ import annotations

from .cassette import Cassette
from .errors import CassetteError, CassetteMiss
from .tape import key_of

__all__ = ["Cassette", "CassetteError", "CassetteMiss", "key_of"]
