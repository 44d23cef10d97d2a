"""Evaluators, datasets, scenarios and connectors read the same paths in the same way."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.paths import follow, read_path
from evalstudio.base.problems import InvalidInput
from evalstudio.connectors.http import http_agent
from evalstudio.conversation.placeholders import fill
from evalstudio.evaluators.builtin.state_match import state_match
from evalstudio.scoring.rows import RowReader
from evalstudio.testing import context

ORDER: dict[str, Any] = {"items": [{"the id": 1, "name": "tea"}, {"the id": 2, "name": "cup"}]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("order.items[-1].name", "cup"),
        ("order.items.0.name", "tea"),
        ("order['items'][1].name", "cup"),
        ("""order.items[0]["the id"]""", 1),
    ],
)
def test_a_path_means_the_same_wherever_it_is_written(path: str, value: Any) -> None:
    data = {"order": ORDER}
    assert context("ok", context=data).find(f"context.{path}") == value
    assert fill(f"{{{{ {path} }}}}", data) == str(value)
    rows = RowReader((), {"response": path})
    assert rows.parse(1, b'{"order": %s}' % _json(ORDER))["response"] == value
    assert follow(data, read_path(path)) == value


def _json(value: Any) -> bytes:
    import orjson

    return orjson.dumps(value)


def test_a_malformed_path_is_refused_where_it_is_configured() -> None:
    with pytest.raises(InvalidInput, match=r"path: .*is not a path such as"):
        state_match.use(expected={}, path="bookings[")
    with pytest.raises(InvalidInput, match=r"responsePath: .*is not a path such as"):
        http_agent.config.parse("http", {"responsePath": "a..b"})


def test_a_malformed_path_asked_for_by_an_evaluator_is_named() -> None:
    with pytest.raises(ValueError, match='stuck at "\\["'):
        context("ok").find("context.a[")
