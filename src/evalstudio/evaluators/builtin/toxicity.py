"""Whether a text is free of given terms, also when they are written with look-alikes or hidden characters."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from ..contract import EvaluationResult, EvaluatorContext
from ..definition import define_evaluator
from .look_alikes import has_look_alikes, skeleton
from .terms import Terms, check_terms, is_quick
from .text import Graded, ScopedTextConfig, comparable, ruled, scoped_texts, text_work, undisguised


def _plain(text: str, case_sensitive: bool) -> str:
    return comparable(undisguised(text), case_sensitive=case_sensitive, collapsed=True)


def _visible_term(term: str) -> str:
    if not _plain(term, case_sensitive=True):
        raise ValueError("must not be blank")
    return term


class ToxicityConfig(ScopedTextConfig):
    """The terms that must not occur."""

    toxic_terms: list[Annotated[str, AfterValidator(_visible_term)]] = Field(
        min_length=1, description="The words or phrases that must not occur"
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ")
    match_whole_word: bool = Field(True, description="Whether a term inside a longer word does not count")

    @field_validator("toxic_terms")
    @classmethod
    def _not_too_many(cls, terms: list[str]) -> list[str]:
        check_terms(terms)
        return terms

    @cached_property
    def compiled(self) -> Terms:
        return Terms(self.terms, whole_word=self.match_whole_word)

    @cached_property
    def compiled_skeletons(self) -> Terms:
        return Terms(self.skeletons, whole_word=self.match_whole_word)

    @cached_property
    def skeletons(self) -> dict[str, str]:
        """The form in which letters that look alike are the same, with the form of the term."""
        return {_plain(skeleton(form), self.case_sensitive): form for form in self.terms}

    @cached_property
    def terms(self) -> dict[str, str]:
        """Each different term in the form to look for, with its first spelling."""
        forms: dict[str, str] = {}
        for term in self.toxic_terms:
            forms.setdefault(_plain(term, self.case_sensitive), term)
        return forms


@define_evaluator(type="toxicity", inline=lambda config: is_quick(config.toxic_terms), work=text_work)
def toxicity(ctx: EvaluatorContext[ToxicityConfig]) -> Graded:
    """What the agent says has none of the given toxic terms."""
    config = ctx.config
    texts = scoped_texts(ctx, config.scope, config.source_field, forbids=True)
    forms: set[str] = set()
    for text in texts:
        forms |= config.compiled.present(_plain(text, config.case_sensitive))
        if has_look_alikes(text):
            alike = config.compiled_skeletons.present(_plain(skeleton(text), config.case_sensitive))
            forms |= {config.skeletons[one] for one in alike}
    present = [term for form, term in config.terms.items() if form in forms]
    reason = f"toxic terms found: {', '.join(present)}" if present else "no toxic terms found"
    result = ruled(ctx, not present, reason, foundToxicTerms=present)
    if isinstance(result, EvaluationResult) and result.criterion_name is not None:
        # A term occurs or it does not: a yes or no on every scale, not the end of a range.
        result.score = not present
    return result
