"""Personal data in the scripts, escapes and spellings that people and programs write it in."""

from __future__ import annotations

import pytest

from evalstudio.base.personal_data import USUAL, PersonalData

PERSONAL = PersonalData.of(USUAL, {"ticket": r"T–\d{4}"})


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("mail jürgen@müller.de now", "mail [email] now"),
        ("用户@例子.公司", "[email]"),
        ("ａ＠ｂ．ｃｏｍ", "[email]"),
        ("?mail=john%40example.com", "?mail=[email]"),
        ("card ４１１１ １１１１ １１１１ １１１１.", "card [card]."),
        ("4111\u00a01111\u00a01111\u00a01111", "[card]"),
        ("4111–1111–1111–1111", "[card]"),
        ("tel +٩٦٦ ٥٠ ١٢٣ ٤٥٦٧", "tel [phone]"),
        ("de89 3704 0044 0532 0130 00", "[iban]"),
        ('said {"a":"x\\u0040y.com"} twice', 'said {"a":"[email]"} twice'),
        ('{"a":"x\\u0040y.com"}', '{"a":"[email]"}'),
        ("T–1234 of a@b.com", "[ticket] of [email]"),
    ],
)
def test_it_is_found_however_it_is_written(text: str, redacted: str) -> None:
    assert PERSONAL.may_be_in(text)
    assert PERSONAL.text(text) == redacted


@pytest.mark.parametrize(
    "text", ["plain", "C:\\users\\urs", "price \\u20ac 5", "0.1234567890123", "été à 5 €", "\\u"]
)
def test_what_is_none_stays_as_it_is(text: str) -> None:
    assert PERSONAL.text(text) == text


def test_escapes_of_escapes_come_to_an_end() -> None:
    assert PERSONAL.text("x\\u005c" + "u005c" * 3000 + "u0040") == "[too deep]"
