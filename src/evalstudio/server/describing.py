"""The OpenAPI document as text, the same on every machine."""

from __future__ import annotations

import json

from .app import create_app


def openapi_text() -> str:
    return json.dumps(create_app().openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
