"""What goes wrong with a cassette."""

from __future__ import annotations


class CassetteError(Exception):
    """A cassette that cannot be used as it is; the message says which, where and why."""


class CassetteMiss(CassetteError):
    """A replayed cassette holds no answer to what was asked."""
