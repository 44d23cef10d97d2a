"""Placeholders: filled in one pass, values never looked at again, whatever they contain."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base import placeholders
from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.placeholders import fill, fill_data, fill_message, fill_template
from evalstudio.messages import Message

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
# Values that look like placeholders, that open or close one, and anything else.
TRICKY = st.lists(
    st.one_of(
        st.sampled_from(["{{", "}}", "{", "}", "{{a}}", "{{ b }}", "\\1", "\\g<0>", "a", " "]), st.text()
    ),
    max_size=6,
).map("".join)


@given(st.dictionaries(NAMES, TRICKY, min_size=1, max_size=5), st.data())
def test_values_are_never_expanded(values: dict[str, str], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(values)), max_size=8))
    text = "|".join(f"{{{{{name}}}}}" for name in names)
    assert fill(text, values) == "|".join(values[name] for name in names)


@given(NAMES, TRICKY, st.sampled_from(["", " ", "  ", "\t", "\n"]))
def test_blanks_inside_the_braces_do_not_matter(name: str, value: str, blank: str) -> None:
    assert fill(f"<{{{{{blank}{name}{blank}}}}}>", {name: value}) == f"<{value}>"


@given(st.text().filter(lambda text: "{{" not in text), st.dictionaries(NAMES, TRICKY))
def test_text_without_placeholders_stays(text: str, values: dict[str, str]) -> None:
    assert fill(text, values) == text


@given(NAMES, st.dictionaries(NAMES, TRICKY))
def test_a_missing_value_is_refused_by_name(name: str, values: dict[str, str]) -> None:
    values.pop(name, None)
    with pytest.raises(InvalidInput, match=name):
        fill(f"Hello {{{{{name}}}}}", values)


@given(st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.lists(st.integers(0, 9))))
def test_other_values_are_written_as_json(value: Any) -> None:
    assert orjson.loads(fill("{{x}}", {"x": value})) == value


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{city}}", "Oslo"),
        ("{{ order.items[1].name }}", "tea"),
        ("{{order.items[-1].name}}", "tea"),
        ('{{order["items"][1].name}}', "tea"),
        ("{{order.items.0.name}}", "{{city}}"),
        ("{{a.b}}", "dotted"),
        ("{{straße}}", "ja"),
        ("{{{city}}}", "{Oslo}"),
        ("{{}} {city} {{ }} {{city", "{{}} {city} {{ }} {{city"),
        ("{{city}}{{city}}", "OsloOslo"),
        ("", ""),
    ],
)
def test_paths_and_near_misses(text: str, filled: str) -> None:
    values = {
        "city": "Oslo",
        "order": {"items": [{"name": "{{city}}"}, {"name": "tea"}]},
        "a.b": "dotted",
        "straße": "ja",
    }
    assert fill(text, values) == filled


def test_messages_are_filled_wherever_they_have_a_text() -> None:
    message = Message.model_validate(
        {
            "role": "user",
            "name": "{{who}}",
            "content": [
                {"type": "text", "text": "Hi {{who}}"},
                {"type": "image_url", "image_url": "{{who}}"},
            ],
        }
    )
    filled = fill_message(message, {"who": "{{who}}!"})
    assert filled.to_json() == {
        "role": "user",
        "name": "{{who}}!",
        "content": [{"type": "text", "text": "Hi {{who}}!"}, {"type": "image_url", "image_url": "{{who}}!"}],
    }
    assert message.text == "Hi {{who}}"
    assert fill_message(Message(role="assistant"), {}).content is None


def test_arguments_of_tool_calls_stay_json_whatever_a_value_holds() -> None:
    call = {"id": "1", "function": {"name": "find", "arguments": '{"name": "{{who}}", "size": "{{size}}"}'}}
    message = Message.model_validate({"role": "assistant", "tool_calls": [call]})
    filled = fill_message(message, {"who": 'A "quoted" name', "size": 3})
    assert filled.tool_calls is not None
    assert filled.tool_calls[0].arguments() == {"name": 'A "quoted" name', "size": 3}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (r"\{{city}}", "{{city}}"),
        (r"\\{{city}}", "\\Oslo"),
        (r"\\\{{city}}", r"\{{city}}"),
        (r"\{{unknown}}", "{{unknown}}"),
        ('{{"a": 1}}', '{{"a": 1}}'),
        (r'\{{"a": 1}}', r'\{{"a": 1}}'),
        ("{{#if city}}", "{{#if city}}"),
        ("{{price (€)}}", "12"),
        ("{{order id}}", "A-1"),
    ],
)
def test_braces_can_be_kept(text: str, filled: str) -> None:
    assert fill(text, {"city": "Oslo", "price (€)": 12, "order id": "A-1"}) == filled


@given(TRICKY)
def test_a_value_is_not_expanded_by_the_template_it_is_put_into(value: str) -> None:
    own = {"response": "(the response)"}
    once = fill_template("{{city}}|{{response}}", {"city": value}, own.__contains__)
    assert placeholders.fill(once, own.get) == f"{value}|(the response)"


def test_data_keeps_the_type_of_a_value_and_its_own_shape() -> None:
    values = {"n": 3, "ok": True, "rows": [1, {"a": "{{n}}"}], "key": "id"}
    data = {"{{key}}": "{{n}}", "list": ["{{ok}}", "no. {{n}}", "{{rows}}"], "other": (1, None)}
    expected = {"id": 3, "list": [True, "no. 3", [1, {"a": "{{n}}"}]], "other": (1, None)}
    assert fill_data(data, values) == expected


def test_everything_without_a_value_is_told_with_its_place_and_the_names_there_are() -> None:
    data = {"rows": [{"id": "{{order.idd}}"}], "{{nope}}": 1}
    with pytest.raises(InvalidInput) as caught:
        fill_data(data, {"order": {"id": 7}})
    first, second = caught.value.problems
    assert (first.path, second.path) == (("rows", 0, "id"), ("{{nope}}",))
    assert "did you mean order.id" in first.hint
    assert second.hint == "its values are: order, order.id"
    with pytest.raises(InvalidInput, match=r"keep the braces with \\\{\{nope\}\}"):
        fill("{{nope}}", None)


def test_two_names_that_become_one_are_refused() -> None:
    with pytest.raises(InvalidInput, match='"id" is there twice once it is filled in'):
        fill_data({"id": 1, "{{key}}": 2}, {"key": "id"})
