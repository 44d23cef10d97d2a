"""Patterns whoever wrote them: on a linear-time engine where it can read them, else under a time limit.

Everything that can be wrong with a pattern is found when it is compiled, which happens as configs load.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import re2

from ..base.json_text import whole_text
from ..base.lazy_dataclass import dataclass
from ..base.text import cut
from .limits import DEFAULT_LIMITS, limit_exceeded

if TYPE_CHECKING:
    import regex

LONGEST_PATTERN = 10_000
LONGEST_QUOTE = 200
SECONDS = DEFAULT_LIMITS.pattern_seconds

_FLAGS = "ims"
_NO_MEANING_HERE = "guy"
# A program of this size stays within a fraction of a second on long texts even where the fast path gives up.
_SMALL_PROGRAM = 2_000
_PROGRAM_PER_STEP = 100
# The backtracking engine writes counted repetitions out, at a cost that grows with the square of this.
_MOST_GROWTH = 4_000
# What the linear engine says of syntax that it lacks, as opposed to syntax that is wrong or too large.
_LACKS = ("invalid perl operator", "invalid escape sequence", "bad repetition", "invalid character class")

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|.)", re.DOTALL)
_VERBOSE = re.compile(r"\(\?[A-Za-wyz0-9-]*x")
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]?|\(\?#[^)]*+\)?|\((?:\?(?:[:=!>|]|<[=!]))?|\{(?P<low>\d*)(?:,(?P<high>\d*))?\}|.",
    re.DOTALL,
)


_EDGES = ("\\b", "\\B", "\\m", "\\M", "\\G")
_LOOKING_BACK = ("^", "\\A", "(?<=", "(?<!", *_EDGES)
_LOOKING_AHEAD = ("$", "\\z", "\\Z", "(?=", "(?!", *_EDGES)


class PatternTimeout(ValueError):
    """A match that took too long; says nothing about whether the text matches."""


# Finds in a text, under a time limit in seconds of which so many are left.
_Find = Callable[[str, float, float], str | None]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. ``linear`` ones are quick on any text; others belong in a worker thread."""

    source: str
    linear: bool
    _find: _Find
    steps: float = 1
    """About how many steps a character of a text may take."""
    quoted: str = field(init=False)
    """The pattern for a reader."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "quoted", f"/{cut(self.source, LONGEST_QUOTE)}/")

    def find(self, text: str, seconds: float = SECONDS, left: float | None = None) -> str | None:
        """The first piece of the text that matches, compared in NFC; in the time left of a limit."""
        plain = text if text.isascii() else _plain(text)
        return self._find(plain, seconds, seconds if left is None else left)

    def search(self, text: str) -> bool:
        return self.find(text) is not None


def compile_pattern(pattern: str, flags: str = "") -> Pattern:
    """Compile a pattern, or say in a ``ValueError`` what is wrong with it or with its flags."""
    chosen = _read_flags(flags)
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"pattern has {len(pattern):,} characters; at most {LONGEST_PATTERN:,} are allowed")
    source = _plain(pattern)
    try:
        engine = re2.compile(_for_re2(source, chosen), _options())
    except re2.error as error:
        return Pattern(pattern, False, _backtracking(source, chosen, _words(error)))

    match, unanchored = matching(engine)

    def find(text: str, _seconds: float, _left: float) -> str | None:
        encoded = text.encode()
        start, end = match(unanchored, encoded, 0, len(encoded))[0]
        return None if start < 0 else encoded[start:end].decode(errors="replace")

    size = max(engine.programsize, engine.reverseprogramsize)
    return Pattern(pattern, size <= _SMALL_PROGRAM, find, 1 + size / _PROGRAM_PER_STEP)


_Match = Callable[[Any, bytes, int, int], Sequence[tuple[int, int]]]


def matching(engine: Any) -> tuple[_Match, Any]:
    """What finds the places of a match in a text, from -1 where there is none, and what lets it be anywhere.

    The library's own search makes a generator and a match, which take longer than the search itself.
    """
    try:
        match, unanchored = engine._regexp.Match, import_module("re2._re2").RE2.Anchor.UNANCHORED
        _start, _end = match(unanchored, b"", 0, 0)[0]
    except (ImportError, AttributeError, TypeError, ValueError):
        return lambda _, text, start, end: [_span(engine.search(text, start, end))], None
    return match, unanchored


def _span(match: Any) -> tuple[int, int]:
    return (-1, -1) if match is None else match.span()


def matches_any_text(pattern: Pattern) -> bool:
    """Whether a pattern surely matches whatever it is tried on.

    One that matches the empty text does so at the start of any text unless it looks at what follows, and at
    the end of any text unless it looks at what comes before.
    """
    if not pattern.search(""):
        return False
    tokens = [token[0] for token in _TOKEN.finditer(pattern.source)]
    looks_back = any(token in _LOOKING_BACK for token in tokens)
    looks_ahead = any(token in _LOOKING_AHEAD for token in tokens)
    return not (looks_back and looks_ahead)


def _read_flags(flags: str) -> str:
    for flag in flags:
        if flag not in _FLAGS + _NO_MEANING_HERE:
            raise ValueError(f"unknown flag {flag!r}; known are i, m and s (g, u and y change nothing here)")
    return "".join(flag for flag in _FLAGS if flag in flags)


def _plain(text: str) -> str:
    """The text in NFC, without halves of surrogate pairs, which no engine takes."""
    return text if text.isascii() else unicodedata.normalize("NFC", whole_text(text))


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    return options


def _for_re2(pattern: str, flags: str) -> str:
    """The pattern with escapes other dialects have in this engine's spelling, and its flags in front."""
    body = _ESCAPE.sub(_respell, pattern)
    return f"(?{flags}){body}" if flags else body


def _respell(escape: re.Match[str]) -> str:
    if code := escape[1] or escape[2]:
        return f"\\x{{{code}}}"
    return r"\z" if escape[0] == r"\Z" else escape[0]


def _respell_name(escape: re.Match[str]) -> str:
    return r"\g" if escape[0] == r"\k" else escape[0]


def _words(error: re2.error) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _backtracking(source: str, flags: str, reason: str) -> _Find:
    if not reason.startswith(_LACKS):
        most = " (at most 1,000, nested ones multiplied)" if "repetition size" in reason else ""
        raise ValueError(f"bad pattern: {reason[:200]}{most}")
    if _VERBOSE.search(source):
        raise ValueError("bad pattern: the x flag is not supported; write the pattern without comments")
    if _grows(source) > _MOST_GROWTH:
        raise ValueError(
            f"bad pattern: its repetitions come to more than {_MOST_GROWTH:,} when written out, "
            "too many for a pattern with lookaround or backreferences"
        )
    engine = _compile_regex(_ESCAPE.sub(_respell_name, source), flags)

    def find(text: str, seconds: float, left: float) -> str | None:
        try:
            match = engine.search(text, timeout=max(left, 0.001), concurrent=True)
        except TimeoutError:
            message = f"pattern took longer than {seconds:g} s on this text"
            raise PatternTimeout(str(limit_exceeded(message, "patternSeconds"))) from None
        return None if match is None else match.group()

    return find


def _compile_regex(source: str, flags: str) -> regex.Pattern:
    import regex  # only a pattern the linear engine cannot read needs it

    letters = {"i": regex.I, "m": regex.M, "s": regex.S}
    try:
        return regex.compile(source, sum(letters[flag] for flag in flags), cache_pattern=False)
    except regex.error as error:
        raise ValueError(f"bad pattern: {error}") from None
    except (RecursionError, OverflowError, LookupError, TypeError, AttributeError):
        # What the library lets through on the strangest of patterns.
        raise ValueError("bad pattern: nested too deeply, or not understood") from None


def _grows(pattern: str) -> int:
    """At least how much larger a pattern becomes when its counted repetitions are written out."""
    open_groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text.startswith("(?#"):
            continue
        if text.startswith("("):
            open_groups.append(0)
            last = 0
        elif text == ")":
            # A stray one stands for everything before it: too much rather than too little.
            last = open_groups.pop() if len(open_groups) > 1 else open_groups[0]
            open_groups[-1] += last
        elif token["low"] is not None:
            times = _times(token["high"] or token["low"])
            open_groups[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            open_groups[-1] += 1
    return sum(open_groups) - len(pattern)


def _times(digits: str) -> int:
    return max(1, int(digits or 1)) if len(digits) <= 6 else _MOST_GROWTH + LONGEST_PATTERN
