"""Plain rules over a text: patterns, lengths, words, JSON. One result per rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AnySet
from functools import cached_property
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, field_validator, model_validator

from ...base.text import cut
from ..contract import EvaluatorContext, TurnFacts
from ..definition import EvaluatorConfig, define_evaluator
from ..limits import EvaluatorLimits
from ..patterns import LONGEST_QUOTE, Pattern
from .json_schema import NotJson, read_json
from .look_alikes import has_look_alikes, skeleton
from .regex import checked_pattern, first_match, match_reason
from .terms import Terms, check_terms, is_quick
from .text import (
    Answers,
    Graded,
    ScopedTextConfig,
    as_list,
    comparing,
    errored,
    joined,
    nfc,
    ruled,
    scoped_texts,
    text_work,
    undisguised,
    visible,
    visible_word,
)

Outcome = tuple[bool, str]


def _not_blank(word: str) -> str:
    visible_word(word)
    return word


Keyword = Annotated[str, AfterValidator(_not_blank)]


class _Check(EvaluatorConfig):
    """A check of a text."""

    @property
    def forbids(self) -> bool:
        """Whether the text must not hold something."""
        return False

    @property
    def is_quick(self) -> bool:
        """Whether it needs no thread of its own."""
        return True

    @property
    def steps(self) -> float:
        """About how many steps it takes for a character."""
        return 1


class RegexRule(_Check):
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

    @property
    def forbids(self) -> bool:
        return self.expected_outcome == "no_match"

    @property
    def is_quick(self) -> bool:
        return self.compiled.linear

    @property
    def steps(self) -> float:
        return self.compiled.steps

    def check(self, texts: Sequence[str], limits: EvaluatorLimits) -> Outcome:
        must_match = self.expected_outcome == "match"
        match = first_match(self.compiled, texts, limits.pattern_seconds, hidden=not must_match)
        quote = None if match is None else cut(match, LONGEST_QUOTE)
        return (match is not None) == must_match, match_reason(self.compiled, quote)


class _Bounded(_Check):
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

    def check(self, texts: Sequence[str], limits: EvaluatorLimits) -> Outcome:
        text = nfc(joined(texts))
        return self.within(len(visible(text)), len(text), "characters")


class _Words(_Check):
    """Words to look for, in the form in which they are compared."""

    keywords: list[Keyword]
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ")

    @field_validator("keywords")
    @classmethod
    def _not_too_many(cls, keywords: list[str]) -> list[str]:
        check_terms(keywords)
        return keywords

    @cached_property
    def forms(self) -> dict[str, str]:
        """Each keyword with the form in which it is compared."""
        return {word: self.fold(word) for word in self.keywords}

    @property
    def is_quick(self) -> bool:
        return is_quick(self.keywords)

    @cached_property
    def compiled_terms(self) -> Terms:
        return Terms(self.forms.values(), whole_word=False)

    @cached_property
    def skeletons(self) -> dict[str, str]:
        """The form in which letters that look alike are the same, with the form of the keyword."""
        return {self.fold(skeleton(word)): form for word, form in self.forms.items()}

    @cached_property
    def compiled_skeletons(self) -> Terms:
        return Terms(self.skeletons, whole_word=False)

    @cached_property
    def fold(self) -> Callable[[str], str]:
        return comparing(case_sensitive=self.case_sensitive, collapsed=False)


class IncludesRule(_Words):
    """Which keywords the text holds."""

    type: Literal["includes"] = Field(description="Keywords the text holds")
    keywords: list[Keyword] = Field(min_length=1, description="The words or phrases to look for")
    expected_outcome: Literal["all", "any", "none"] = Field(
        "all", description="Whether all, any or none of them must be there"
    )

    @property
    def forbids(self) -> bool:
        return self.expected_outcome == "none"

    def check(self, texts: Sequence[str], limits: EvaluatorLimits) -> Outcome:
        text = joined(texts)
        terms = self.compiled_terms
        found = terms.present(self.fold(text))
        if self.expected_outcome == "none" and not text.isascii():
            found |= terms.present(self.fold(undisguised(text)))
            if has_look_alikes(text):
                alike = self.compiled_skeletons.present(self.fold(skeleton(text)))
                found |= {self.skeletons[one] for one in alike}
        if not found:
            return self._with_none
        return self._with_all if len(found) == len(terms) else self._with(found)

    @cached_property
    def _with_none(self) -> Outcome:
        return self._with(frozenset())

    @cached_property
    def _with_all(self) -> Outcome:
        return self._with(frozenset(self.forms.values()))

    def _with(self, found: AnySet[str]) -> Outcome:
        """What it comes to where the text holds these of the keywords, in the form they are compared in."""
        if self.expected_outcome == "all":
            missing = [word for word in self.keywords if self.forms[word] not in found]
            return not missing, f"missing: {_listed(missing)}" if missing else "all keywords found"
        present = [word for word in self.keywords if self.forms[word] in found]
        reason = f"found: {_listed(present)}" if present else "no keyword found"
        return bool(present) == (self.expected_outcome == "any"), reason


class KeywordCountRule(_Words, _Bounded):
    """How often keywords occur, all of them together."""

    type: Literal["keyword_count"] = Field(description="How often keywords occur")
    keywords: list[Keyword] = Field(
        min_length=1, description="The words or phrases to count, all of them together"
    )

    def check(self, texts: Sequence[str], limits: EvaluatorLimits) -> Outcome:
        text = joined(texts)
        least = most = self.compiled_terms.count(self.fold(text))
        if not text.isascii():
            most = max(least, self.compiled_terms.count(self.fold(undisguised(text))))
            if has_look_alikes(text):
                most = max(most, self.compiled_skeletons.count(self.fold(skeleton(text))))
        return self.within(least, most, "keyword occurrences")


class JsonParseRule(_Check):
    """Whether the text is JSON; of several messages of a turn, the last."""

    type: Literal["json_parse"] = Field(description="The text is JSON")

    def check(self, texts: Sequence[str], limits: EvaluatorLimits) -> Outcome:
        try:
            read_json(texts[-1], limits.json_bytes)
        except NotJson as error:
            return False, str(error)
        return True, "the text is JSON"


Check = Annotated[
    RegexRule | LengthRule | IncludesRule | KeywordCountRule | JsonParseRule, Field(discriminator="type")
]


class Rule(ScopedTextConfig):
    """A check, the text it looks at, and the criterion it scores."""

    config: Check = Field(description="What to check")

    @cached_property
    def answers(self) -> Answers:
        return Answers()

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
    return all(rule.config.is_quick for rule in config.rules)


def _work(config: RuleBasedConfig, facts: TurnFacts) -> float:
    work = 0.0
    for rule in config.rules:
        work += rule.config.steps * text_work(rule, facts)
    return work


@define_evaluator(type="rule-based", label="Rules", gate="finally", inline=_inline, work=_work)
def rule_based(ctx: EvaluatorContext[RuleBasedConfig]) -> Graded:
    """The texts in question keep to plain rules on patterns, lengths, words and JSON."""
    rules = ctx.config.rules
    if len(rules) == 1:
        return _apply(ctx, rules[0])
    return [result for rule in rules for result in as_list(_apply(ctx, rule))]


def _apply(ctx: EvaluatorContext[RuleBasedConfig], rule: Rule) -> Graded:
    check = rule.config
    try:
        texts = scoped_texts(ctx, rule.scope, rule.source_field, forbids=check.forbids)
        outcome = check.check(texts, ctx.facts.limits)
    except Exception as error:
        return errored(error, rule.criterion_name, rule=check.type)
    made = rule.answers.made(ctx)
    return made.get(outcome) or Answers.keep(made, outcome, ruled(ctx, *outcome, rule, rule=check.type))


def _listed(words: list[str], most: int = 10) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(repr(word) for word in words[:most]) + more
