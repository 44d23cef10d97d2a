"""Patterns: the same answer as any engine would give, but never a hang."""

from __future__ import annotations

import re
import threading
import time

import pytest
import re2

from evalstudio.evaluators.patterns import LONGEST_PATTERN, PatternTimeout, compile_pattern, matching

LONG = "a" * 100_000 + "!"


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "found"),
    [
        ("b+", "", "abbbc", "bbb"),
        ("hello", "i", "Oh HELLO", "HELLO"),
        ("é", "i", "É", "É"),
        ("^b$", "m", "a\nb\nc", "b"),
        ("a.b", "s", "a\nb", "a\nb"),
        ("a.b", "", "a\nb", None),
        ("a", "guy", "a", "a"),
        ("", "", "", ""),
        (r"order \d{4}", "", "your order 1234 is here", "order 1234"),
        ("日本", "", "これは日本です", "日本"),
        (r"\u00e9$", "", "café", "é"),
        (r"\u{1F600}", "", "hi 😀", "😀"),
        (r"\\u0041", "", r"\u0041", r"\u0041"),
        (r"end\Z", "", "the end", "end"),
        (r"(?<word>a)", "", "a", "a"),
    ],
)
def test_a_plain_pattern_finds_its_text_in_linear_time(
    pattern: str, flags: str, text: str, found: str | None
) -> None:
    compiled = compile_pattern(pattern, flags)
    assert compiled.linear
    assert compiled.find(text) == found
    assert compiled.search(text) == (found is not None)


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "found"),
    [
        (r"foo(?=bar)", "", "foobar", "foo"),
        (r"foo(?!bar)", "", "foobar", None),
        (r"(?<=\$)\d+", "", "costs $42", "42"),
        (r"(\w)\1", "", "hello", "ll"),
        (r"(?<c>\w)\k<c>", "", "hello", "ll"),
        (r"FOO(?=bar)", "i", "fooBAR", "foo"),
        (r"^b(?=$)", "m", "a\nb", "b"),
        (r"a.b(?!x)", "s", "a\nb", "a\nb"),
    ],
)
def test_lookaround_and_backreferences_work_but_are_not_linear(
    pattern: str, flags: str, text: str, found: str | None
) -> None:
    compiled = compile_pattern(pattern, flags)
    assert not compiled.linear
    assert compiled.find(text) == found


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert compile_pattern("cafe\u0301").search("café")
    assert compile_pattern("café").search("cafe\u0301")
    assert compile_pattern("cafe\u0301(?!x)").search("café")


def test_halves_of_surrogate_pairs_do_not_break_matching() -> None:
    assert compile_pattern("^.$").find("\ud83d\ude00") == "😀"
    assert compile_pattern("^a.b$").search("a\ud83db")
    assert compile_pattern("a(?!x)").search("\ud83da")
    compile_pattern("\ud83d")


@pytest.mark.parametrize(
    "pattern", ["[[", "a(", "*a", "a**", "\\", "(?=a", "(?P>x)", "(?<n>a)(?P=m)", "(?=a)(?1", "a{2,1}"]
)
def test_a_bad_pattern_is_refused_when_it_is_compiled(pattern: str) -> None:
    with pytest.raises(ValueError, match="bad pattern"):
        compile_pattern(pattern)


@pytest.mark.parametrize("flags", ["Q", "x", "iQ", " ", "I"])
def test_an_unknown_flag_is_refused_and_named(flags: str) -> None:
    with pytest.raises(ValueError, match="unknown flag"):
        compile_pattern("a", flags)


def test_a_very_long_pattern_is_refused() -> None:
    assert not compile_pattern("a" * LONGEST_PATTERN).search("a")
    with pytest.raises(ValueError, match="10,001 characters; at most 10,000"):
        compile_pattern("a" * (LONGEST_PATTERN + 1))


def test_a_bad_pattern_writes_nothing_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError):
        compile_pattern("((")
    compile_pattern("(.?){1000}x").search("a" * 20_000)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "(a|aa)+$", "(.*)*x", "(x+x+)+y", "(a?){50}a{50}$", "^(a|a?)+$"]
)
def test_hostile_patterns_finish_in_milliseconds(pattern: str) -> None:
    start = time.process_time()
    compiled = compile_pattern(pattern)
    assert compiled.linear
    assert not compiled.search(LONG)
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1,1000}){1,1000}){1,1000}",
        "(?=x)((a{1,1000}){1,1000}){1,1000}",
        "(?=x)(?:(?:(?:a{1000}){1000}){1000})",
        "(?=x)" + "(?:" * 16 + "a" + "){2}" * 16,
        "(?=x)(?:(?:[)]a{1000}){1000}){1000}",
        "(?=x)(?:a{1000})(?#stop){1000}",
        "(?=x)(?x)(?:(?:a {1000}) {1000}) {1000}",
        "(?=x)a{" + "9" * 5000 + "}",
        "(?=x)" + "(" * 4900 + ")" * 4900,
    ],
)
def test_patterns_that_would_take_long_to_compile_are_refused_at_once(pattern: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="bad pattern"):
        compile_pattern(pattern)
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=x)" + "a?" * 4_900,
        "(?=x|" + "|".join(f"word{n}" for n in range(1_000)) + ")",
        "(?!x)" + "(?:" * 11 + "a" + "){2}" * 11,
        "(?!x).{1,4000}",
        "(?!x)(?:" + "(?:a|b)" * 500 + "){2}",
    ],
)
def test_large_patterns_with_lookaround_compile_within_bounds(pattern: str) -> None:
    start = time.process_time()
    compile_pattern(pattern)
    assert time.process_time() - start < 1.0


def test_a_match_that_runs_on_ends_with_a_clear_error() -> None:
    compiled = compile_pattern("(?=a)^(a+)+$")
    start = time.process_time()
    with pytest.raises(PatternTimeout, match="pattern took longer than 1 s on this text"):
        compiled.search(LONG)
    assert time.process_time() - start < 3


def test_a_match_that_runs_on_leaves_the_others_running() -> None:
    compiled = compile_pattern("(?=a)^(a+)+$")

    def runs_on() -> None:
        with pytest.raises(PatternTimeout):
            compiled.search(LONG)

    slow = threading.Thread(target=runs_on)
    slow.start()
    longest, last = 0.0, time.perf_counter()
    while slow.is_alive():
        time.sleep(0.01)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    assert longest < 0.5


def test_a_large_program_is_not_run_in_place() -> None:
    assert not compile_pattern("(.?){1000}x").linear


class OtherEngine:
    """The engine in a version of the library that hides its search elsewhere."""

    def __init__(self, pattern: str) -> None:
        self.search = re.compile(pattern.encode()).search


@pytest.mark.parametrize(("text", "place"), [(b"abbbc", (1, 4)), (b"ac", (-1, -1)), (b"", (-1, -1))])
def test_a_pattern_finds_the_same_by_the_public_search_of_the_library(
    text: bytes, place: tuple[int, int]
) -> None:
    for engine in (re2.compile("b+"), OtherEngine("b+")):
        match, anywhere = matching(engine)
        assert match(anywhere, text, 0, len(text))[0] == place
