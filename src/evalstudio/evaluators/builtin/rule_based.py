"""Plain rules over a text: patterns, lengths, words, JSON. One result per rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, model_validator

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import EvaluatorConfig, define_evaluator
from ..patterns import Pattern
from .json_schema import NotJson, read_json
from .regex import checked_pattern, first_match, match_reason
from .text import (
    ScopedTextConfig,
    as_list,
    comparable,
    errored,
    joined,
    nfc,
    ruled,
    scoped_texts,
    undisguised,
    visible,
    visible_word,
)

Outcome = tuple[bool, str]


def _not_blank(word: str) -> str:
    visible_word(word)
    return word


Keyword = Annotated[str, AfterValidator(_not_blank)]


class RegexRule(EvaluatorConfig):
    """A pattern that must or must not match."""

    type: Literal["regex"] = Field(description="A pattern")
    pattern: str = Field(description=r"The pattern, in RE2 syntax; \w, \d and \b know ASCII only")
    flags: str = Field(
        "", description="i ignores case, m lets ^ and $ match at lines, s lets . match newlines"
    )
    expected_outcome: Literal["match", "no_match"] = Field(
        "match", description="Whether it must match or not"
    )

    @cached_property
    def compiled(self) -> Pattern:
        return checked_pattern(self.pattern, self.flags, must_match=self.expected_outcome == "match")

    def model_post_init(self, context: Any, /) -> None:
        _ = self.compiled

    def check(self, texts: Sequence[str]) -> Outcome:
        must_match = self.expected_outcome == "match"
        match = first_match(self.compiled, texts, hidden=not must_match)
        return (match is not None) == must_match, match_reason(self.compiled, match)


class _Bounded(EvaluatorConfig):
    """A number with at least one bound."""

    min: int | None = Field(None, ge=0, description="The least that passes")
    max: int | None = Field(None, ge=0, description="The most that passes")

    @model_validator(mode="after")
    def _bounds(self) -> _Bounded:
        if self.min is None and self.max is None:
            raise ValueError("give min, max or both")
        if not self.min and self.max is None:
            raise ValueError("min 0 without max holds for any text; give a higher min, or a max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is greater than max {self.max}")
        return self

    def within(self, least: int, most: int, what: str) -> Outcome:
        """Whether the bounds hold, each for the way of counting that is harder on the text."""
        if self.min is not None and least < self.min:
            return False, f"{least} {what}, fewer than {self.min}"
        if self.max is not None and most > self.max:
            return False, f"{most} {what}, more than {self.max}"
        return True, f"{most} {what}"


class LengthRule(_Bounded):
    """How long the text is, in characters."""

    type: Literal["length"] = Field(description="The number of characters")

    def check(self, texts: Sequence[str]) -> Outcome:
        text = nfc(joined(texts))
        return self.within(len(visible(text)), len(text), "characters")


class _Words(EvaluatorConfig):
    """Words to look for, in the form in which they are compared."""

    case_sensitive: bool = Field(False, description="Whether upper and lower case differ")

    def fold(self, text: str) -> str:
        return comparable(text, case_sensitive=self.case_sensitive, collapsed=False)


class IncludesRule(_Words):
    """Which keywords the text holds."""

    type: Literal["includes"] = Field(description="Keywords the text holds")
    keywords: list[Keyword] = Field(min_length=1, description="The words or phrases to look for")
    expected_outcome: Literal["all", "any", "none"] = Field(
        "all", description="Whether all, any or none of them must be there"
    )

    def check(self, texts: Sequence[str]) -> Outcome:
        text = joined(texts)
        folded = self.fold(text)
        if self.expected_outcome == "none" and not text.isascii():
            folded = f"{folded}\n{self.fold(undisguised(text))}"
        present = [word for word in self.keywords if self.fold(word) in folded]
        if self.expected_outcome == "all":
            missing = [word for word in self.keywords if word not in present]
            return not missing, f"missing: {_listed(missing)}" if missing else "all keywords found"
        reason = f"found: {_listed(present)}" if present else "no keyword found"
        return bool(present) == (self.expected_outcome == "any"), reason


class KeywordCountRule(_Words, _Bounded):
    """How often keywords occur, all of them together."""

    type: Literal["keyword_count"] = Field(description="How often keywords occur")
    keywords: list[Keyword] = Field(
        min_length=1, description="The words or phrases to count, all of them together"
    )

    def check(self, texts: Sequence[str]) -> Outcome:
        text = joined(texts)
        forms = {self.fold(word) for word in self.keywords}
        least, most = (_occurrences(self.fold(one), forms) for one in (text, undisguised(text)))
        return self.within(least, max(least, most), "keyword occurrences")


def _occurrences(text: str, forms: set[str]) -> int:
    return sum(text.count(form) for form in forms)


class JsonParseRule(EvaluatorConfig):
    """Whether the text is JSON; of several messages of a turn, the last."""

    type: Literal["json_parse"] = Field(description="The text is JSON")

    def check(self, texts: Sequence[str]) -> Outcome:
        try:
            read_json(texts[-1])
        except NotJson as error:
            return False, str(error)
        return True, "the text is JSON"


Check = Annotated[
    RegexRule | LengthRule | IncludesRule | KeywordCountRule | JsonParseRule, Field(discriminator="type")
]


class Rule(ScopedTextConfig):
    """A check, the text it looks at, and the criterion it scores."""

    config: Check = Field(description="What to check")

    @model_validator(mode="before")
    @classmethod
    def _from_flat(cls, value: object) -> object:
        """Accept a rule whose check is written beside its other fields."""
        if not isinstance(value, Mapping) or "config" in value:
            return cast(object, value)
        check = dict(cast(Mapping[str, Any], value))
        around = {key: check.pop(key) for key in _AROUND if key in check}
        return {**around, "config": check}


_AROUND = ("criterionName", "criterion_name", "sourceField", "sourceTextField", "source_field", "scope")


class RuleBasedConfig(EvaluatorConfig):
    """The rules to apply."""

    rules: list[Rule] = Field(min_length=1, description="The rules; each gives a result of its own")


def _inline(config: RuleBasedConfig) -> bool:
    return all(rule.config.compiled.linear for rule in config.rules if isinstance(rule.config, RegexRule))


@define_evaluator(type="rule-based", label="Rules", gate="finally", inline=_inline)
def rule_based(ctx: EvaluatorContext[RuleBasedConfig]) -> list[EvaluationResult]:
    """The texts in question keep to plain rules on patterns, lengths, words and JSON."""
    return [result for rule in ctx.config.rules for result in _apply(ctx, rule)]


def _apply(ctx: EvaluatorContext[RuleBasedConfig], rule: Rule) -> list[EvaluationResult]:
    metadata = {"rule": rule.config.type}
    try:
        holds, reason = rule.config.check(scoped_texts(ctx, rule.scope, rule.source_field))
    except Exception as error:
        return [errored(error, rule.criterion_name, **metadata)]
    return as_list(ruled(ctx, holds, reason, rule, **metadata))


def _listed(words: list[str], most: int = 10) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(repr(word) for word in words[:most]) + more
