"""Lets hypothesis-jsonschema 0.23, which schemathesis builds on, work with newer versions of hypothesis.

It asks ``many.more()`` whether to go on, which became iteration. Import this before generating anything.
"""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture.utils import many

_OVER = object()


def _more(self: Any) -> bool:
    if not hasattr(self, "_walk"):
        self._walk = iter(self.__enter__())
    return next(self._walk, _OVER) is not _OVER


if not hasattr(many, "more"):
    setattr(many, "more", _more)  # noqa: B010
