"""How alike two texts are, letter by letter: character bigrams, Jaro-Winkler or edit distance."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import repeat
from typing import Literal

from pydantic import Field, model_validator

from ..contract import EvaluatorContext, NotAvailable, TurnFacts
from ..definition import define_evaluator
from ..limits import limit_exceeded
from .text import Answers, Graded, TextConfig, characters_at, check_apart, comparing, graded

# Up to here the longest common subsequence is faster than counting.
_SHORT = 1_000


class LexicalSimilarityConfig(TextConfig):
    """What to compare, and how."""

    algorithm: Literal["sorensen-dice", "jaro-winkler", "levenshtein"] = Field(
        "sorensen-dice", description="How likeness is measured"
    )
    reference_field: str = Field("groundTruth", description="Where the text to compare with is")
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ")
    normalize_whitespace: bool = Field(True, description="Whether runs of blanks count as one space")
    threshold: float = Field(0.5, gt=0, le=1, description="The least similarity that passes")

    @cached_property
    def similarity(self) -> Callable[[str, str], float]:
        """The algorithm; its library is loaded when it is first asked for."""
        match self.algorithm:
            case "jaro-winkler":
                from rapidfuzz.distance import JaroWinkler

                return JaroWinkler.normalized_similarity
            case "levenshtein":
                from rapidfuzz.distance import Levenshtein

                return Levenshtein.normalized_similarity
            case "sorensen-dice":
                return dice

    @cached_property
    def form(self) -> Callable[[str], str]:
        return comparing(case_sensitive=self.case_sensitive, collapsed=self.normalize_whitespace)

    @cached_property
    def answers(self) -> Answers:
        return Answers()

    @model_validator(mode="after")
    def _two_texts(self) -> LexicalSimilarityConfig:
        check_apart(self.source_field, self.reference_field, "referenceField")
        return self


# The time of the other algorithms grows with the product of the lengths.
_PAIRS_PER_STEP = 200


def _work(config: LexicalSimilarityConfig, facts: TurnFacts) -> float:
    first, second = characters_at(config.source_field, facts), characters_at(config.reference_field, facts)
    if config.algorithm == "sorensen-dice":
        return 3 * (first + second)
    return first + second + first * second / _PAIRS_PER_STEP


@define_evaluator(type="lexical-similarity", gate="finally", inline=True, work=_work)
def lexical_similarity(ctx: EvaluatorContext[LexicalSimilarityConfig]) -> Graded:
    """The response is spelled much like a reference text."""
    config, most = ctx.config, ctx.facts.limits.similarity_characters
    text = ctx.need_text(config.source_field)
    if len(text) > most:
        _check_length(config, config.source_field, text, most)
    reference = ctx.need_text(config.reference_field)
    if len(reference) > most:
        _check_length(config, config.reference_field, reference, most)
    text, reference = config.form(text), config.form(reference)
    if not text and not reference:
        raise NotAvailable(
            f'the texts at "{config.source_field}" and "{config.reference_field}" are both empty'
        )
    similarity = config.similarity(text, reference)
    made = config.answers.made(ctx)
    return made.get(similarity) or Answers.keep(made, similarity, _answer(ctx, similarity))


def _answer(ctx: EvaluatorContext[LexicalSimilarityConfig], similarity: float) -> Graded:
    config = ctx.config
    algorithm = config.algorithm
    reason = f"{algorithm} similarity {similarity:.3f}, threshold {config.threshold:g}"
    return graded(ctx, similarity, reason, algorithm=algorithm, similarity=similarity)


def _check_length(config: LexicalSimilarityConfig, path: str, text: str, most: int) -> None:
    """Refuse a text that is longer than the algorithm takes."""
    if config.algorithm != "sorensen-dice":
        message = (
            f"the text at {path or 'response'!r} has {len(text):,} characters and {config.algorithm} takes "
            f"{most:,} at most; use sorensen-dice for texts of this size"
        )
        raise limit_exceeded(message, "similarityCharacters")


def dice(first: str, second: str) -> float:
    """Twice the bigrams two texts share, by all they have; a repeated one counts as often as it occurs."""
    if first == second:
        return 1.0
    if len(first) < 2 or len(second) < 2:
        return 0.0
    narrow = first.isascii() and second.isascii()
    ours, theirs = _bigrams(first, narrow), _bigrams(second, narrow)
    return 2 * _shared(ours, theirs) / (len(ours) + len(theirs))


def _bigrams(text: str, narrow: bool) -> array[int]:
    """Every pair of neighbours as one number: the bytes read in pairs, from the first and from the second."""
    if narrow:
        size, number, data = 1, "H", text.encode()
    else:
        size, number, data = 4, "Q", text.encode("utf-32-le", "surrogatepass")
    even = len(text) // 2 * 2 * size
    odd = (len(text) - 1) // 2 * 2 * size
    pairs = array(number, data[:even])
    pairs.frombytes(data[size : size + odd])
    return pairs


@cache
def _common_subsequence() -> Callable[[Sequence[int], Sequence[int]], int]:
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity


def _shared(ours: array[int], theirs: array[int]) -> int:
    """How many items two multisets have in common."""
    if len(ours) + len(theirs) <= _SHORT:
        # Of sorted sequences, the longest common subsequence is the common multiset.
        return _common_subsequence()(sorted(ours), sorted(theirs))
    counts, others = Counter(ours), Counter(theirs)
    return sum(map(min, counts.values(), map(others.get, counts, repeat(0))))
