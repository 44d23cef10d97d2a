"""Parts that are installed on their own: a missing one is named with the command that installs it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def needs_extra(name: str, purpose: str, error: Callable[[str], Exception]) -> Generator[None]:
    """For the imports of an extra: what is missing is raised as an error that says how to install it."""
    try:
        yield
    except ImportError as missing:
        if (missing.name or "").partition(".")[0] == "evalstudio":
            raise
        package = missing.name or str(missing)
        message = f"{purpose} needs a package that is not installed ({package}). Install it with: "
        raise error(f'{message}pip install "evalstudio[{name}]"') from None
