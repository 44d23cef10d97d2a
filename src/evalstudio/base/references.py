"""``${NAME}`` in a text: a value that is looked up in the environment where it is used."""

from __future__ import annotations

import os
import re

REFERENCE = re.compile(r"\$\{([^{}]*)\}")
# A text that takes its value from one reference, such as "Bearer ${KEY}": nothing in it is a literal secret.
HOLDS_ONE = re.compile(r"[^$]*\$\{[^{}]+\}[^$]*")

# Variables named so are no secrets: anybody may refer to them and everybody may read them.
PUBLIC_VARIABLES = "EVALSTUDIO_PUBLIC_"


class UnsetVariable(ValueError):
    """A reference to a variable that is not set, or is blank."""

    def __init__(self, field: str, name: str) -> None:
        super().__init__(
            f"{field} refers to the environment variable {name}, which is not set. Set {name} and try again."
        )


def resolve(text: str, field: str) -> str:
    """The text with every reference replaced; ``field`` is where it is written, for the error."""

    def value_of(reference: re.Match[str]) -> str:
        value = _value(reference[1])
        if not value:
            raise UnsetVariable(field, reference[1])
        return value

    return REFERENCE.sub(value_of, text) if "${" in text else text


def names_in(text: str) -> list[str]:
    """The variables a text refers to."""
    return REFERENCE.findall(text)


def values_of(*texts: str) -> set[str]:
    """What the references in these texts stand for; public variables are no secrets and left out."""
    names = {name for text in texts for name in names_in(text)}
    return {_value(name) for name in names if not name.startswith(PUBLIC_VARIABLES)}


def _value(name: str) -> str:
    # Files and shells leave line breaks at the end of a value.
    return os.environ.get(name, "").strip()
