"""Letters of another alphabet that look like those they stand for: no forbidden word hides in them."""

from __future__ import annotations

import re
from functools import cache

from .text import undisguised

_CYRILLIC = "\u0400-\u052f"
_GREEK = "\u0370-\u03ff\u1f00-\u1fff"
_LATIN = "A-Za-z\u00c0-\u024f\u0250-\u02af\u1e00-\u1eff"
# One letter for all that look alike. Which of them it is says nothing: only such forms are compared.
_SAME = str.maketrans(
    "аАвВсСԁԀеЕһҺНніІјЈкКӏӀмМоОрРԛԚѕЅтТуУѵѴԝԜхХαΑβΒγεΕηΗιΙκΚΜμνΝοΟρΡτΤυΥχΧωΖζıɑɡɩʀʏ",
    "aAbBcCdDeEhHHhiIjJkKlImMoOpPqQsStTyYvVwWxXaAbByeEnHiIkKMuvNoOpPtTuYxXwZziagiry",
)
_LOOKS_LATIN = {*map(chr, _SAME)}
_MIXED_WORD = cache(
    lambda: re.compile(
        f"[{_LATIN}][{_CYRILLIC}{_GREEK}]|[{_CYRILLIC}{_GREEK}][{_LATIN}]|"
        f"[{_CYRILLIC}][{_GREEK}]|[{_GREEK}][{_CYRILLIC}]|[ıɑɡɩʀʏ]"
    )
)
_OTHER_ALPHABET = cache(lambda: re.compile(f"[{_CYRILLIC}{_GREEK}]"))
_LATIN_WORD = cache(lambda: re.compile(f"[{_LATIN}]{{2}}"))


def skeleton(text: str) -> str:
    """The text with one letter for all that look alike; equal for words that look the same."""
    return undisguised(text) if text.isascii() else undisguised(text).translate(_SAME)


def has_look_alikes(text: str) -> bool:
    """Whether letters may stand for those of another alphabet.

    A word has letters of two alphabets; or, in a text with Latin words, all letters of another alphabet look
    Latin. A Russian or Greek text among which there are Latin words is neither.
    """
    if text.isascii():
        return False
    plain = undisguised(text)
    if _MIXED_WORD().search(plain):
        return True
    others = set(_OTHER_ALPHABET().findall(plain))
    return bool(others) and others <= _LOOKS_LATIN and _LATIN_WORD().search(plain) is not None
