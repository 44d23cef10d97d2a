"""References to the environment: replaced at use, an unset one named with the field it is in."""

from __future__ import annotations

import pytest

from evalstudio.base.references import HOLDS_ONE, UnsetVariable, resolve, values_of


def test_references_are_replaced_and_other_dollars_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", " k-1\n")
    monkeypatch.setenv("A_NAME", "${A_KEY}")
    assert resolve("Bearer ${A_KEY}, $5 and $A_KEY", "the header X") == "Bearer k-1, $5 and $A_KEY"
    assert resolve("${A_NAME}", "x") == "${A_KEY}"
    assert values_of("${A_KEY}", "${NOT_SET} ${A_NAME}", "none") == {"k-1", "", "${A_KEY}"}


def test_public_variables_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTUDIO_PUBLIC_REGION", "north")
    monkeypatch.setenv("EVALSTUDIO_PRIVATE", "k-2")
    assert values_of("${EVALSTUDIO_PUBLIC_REGION} ${EVALSTUDIO_PRIVATE}") == {"k-2"}


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_an_unset_variable_is_named_with_its_field(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_KEY", value)
    with pytest.raises(UnsetVariable) as caught:
        resolve("x${NO_KEY}", "storage.path")
    assert str(caught.value) == (
        "storage.path refers to the environment variable NO_KEY, which is not set. Set NO_KEY and try again."
    )


@pytest.mark.parametrize(
    ("text", "is_reference"),
    [
        ("${KEY}", True),
        ("Bearer ${KEY}", True),
        ("${}", False),
        ("a$b${KEY}", False),
        ("${A}${B}", False),
        ("", False),
    ],
)
def test_a_value_taken_from_one_reference_is_told_from_a_literal(text: str, is_reference: bool) -> None:
    assert bool(HOLDS_ONE.fullmatch(text)) is is_reference
