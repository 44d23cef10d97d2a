"""Many words or phrases looked for in one text: one by one where they are few, else by one automaton.

The automaton is that of Aho and Corasick: it reads the text once, however many terms there are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from .text import begins_word, contains, ends_word

MOST_CHARACTERS = 2_000_000
# Up to so many, looking for one after the other is faster.
FEW = 24
# More than this takes so long to put together that the event loop must not wait for it.
QUICK_CHARACTERS = 20_000
_BITS = 21
_CHAR = (1 << _BITS) - 1


def check_terms(terms: Sequence[str]) -> Sequence[str]:
    """Refuse more terms than an automaton can be made of."""
    if (total := sum(map(len, terms))) > MOST_CHARACTERS:
        raise ValueError(
            f"{len(terms):,} terms with {total:,} characters are too many; at most {MOST_CHARACTERS:,} "
            "characters can be looked for at once, so spread them over several evaluators"
        )
    return terms


def is_quick(terms: Sequence[str]) -> bool:
    """Whether there are so few terms that getting ready to look for them takes no time."""
    return len(terms) <= FEW or sum(map(len, terms)) <= QUICK_CHARACTERS


class Terms:
    """Different terms, in the form in which they are compared."""

    def __init__(self, terms: Iterable[str], *, whole_word: bool) -> None:
        self._terms = list(dict.fromkeys(terms))
        self._whole_word = whole_word

    def __len__(self) -> int:
        return len(self._terms)

    @cached_property
    def _automaton(self) -> Automaton:
        return Automaton(self._terms)

    def present(self, text: str) -> set[str]:
        """Those that occur."""
        if len(self._terms) <= FEW:
            if not self._whole_word:
                return {term for term in self._terms if term in text}
            return {term for term in self._terms if contains(text, term, whole_word=True)}
        return {self._terms[number] for number in self._automaton.present(text, self._whole_word)}

    def count(self, text: str) -> int:
        """How often they occur, all together; occurrences of one term do not overlap."""
        if len(self._terms) <= FEW:
            return sum(text.count(term) for term in self._terms)
        return self._automaton.count(text)


class Automaton:
    """States are prefixes of terms, numbered; 0 is the empty one.

    A state and a character are one key of a single dict: a dict for every state would take twice the memory.
    """

    def __init__(self, terms: Sequence[str]) -> None:
        self._lengths = [len(term) for term in terms]
        self._next: dict[int, int] = {}
        # By state, the term that ends there, or -1.
        self._ends = array("i", [-1])
        for number, term in enumerate(terms):
            self._add(number, term)
        states = len(self._ends)
        # By state, the longest other state that it ends with, and the longest of these that is a term.
        self._shorter = array("i", bytes(4 * states))
        self._shorter_term = array("i", bytes(4 * states))
        self._link()
        # By state, the longest state it ends with that is a term, itself included.
        self._term = array("i", self._shorter_term)
        for state, end in enumerate(self._ends):
            if end >= 0:
                self._term[state] = state

    def _add(self, number: int, term: str) -> None:
        state = 0
        for char in term:
            key = state << _BITS | ord(char)
            following = self._next.get(key)
            if following is None:
                following = self._next[key] = len(self._ends)
                self._ends.append(-1)
            state = following
        self._ends[state] = number

    def _link(self) -> None:
        """Shorter states first: what a state ends with is shorter, so it is known by then."""
        following, shorter, ends = self._next.get, self._shorter, self._ends
        for key in self._by_length():
            before, char, state = key >> _BITS, key & _CHAR, self._next[key]
            rest = shorter[before]
            end = following(rest << _BITS | char)
            while end is None and rest:
                rest = shorter[rest]
                end = following(rest << _BITS | char)
            end = shorter[state] = end or 0
            self._shorter_term[state] = end if ends[end] >= 0 else self._shorter_term[end]

    def _by_length(self) -> Iterator[int]:
        """The keys of the states of two characters, of three, and so on."""
        length = array("i", bytes(4 * len(self._ends)))
        levels: list[list[int]] = []
        for key, state in self._next.items():
            level = length[key >> _BITS]
            length[state] = level + 1
            if level == len(levels):
                levels.append([])
            levels[level].append(key)
        return chain.from_iterable(levels[1:])

    def _states(self, text: str) -> Iterator[tuple[int, int]]:
        """Where some term ends, and the longest state there that is a term."""
        following, shorter, terms = self._next.get, self._shorter, self._term
        state = 0
        for end, char in enumerate(map(ord, text), 1):
            longer = following(state << _BITS | char)
            while longer is None and state:
                state = shorter[state]
                longer = following(state << _BITS | char)
            state = longer or 0
            if terms[state]:
                yield end, terms[state]

    def present(self, text: str, whole_word: bool) -> set[int]:
        """The numbers of the terms that occur. One that was found is stepped over from then on."""
        present: set[int] = set()
        onward: dict[int, int] = {}
        for end, first in self._states(text):
            if whole_word and not ends_word(text, end):
                continue
            state = _open(first, onward)
            while state:
                number = self._ends[state]
                after = self._shorter_term[state]
                if not whole_word or begins_word(text, end - self._lengths[number]):
                    present.add(number)
                    onward[state] = after
                state = _open(after, onward)
        return present

    def count(self, text: str) -> int:
        total, free_from = 0, [0] * len(self._lengths)
        for end, first in self._states(text):
            state = first
            while state:
                number = self._ends[state]
                if end - self._lengths[number] >= free_from[number]:
                    total += 1
                    free_from[number] = end
                state = self._shorter_term[state]
        return total


def _open(state: int, onward: dict[int, int]) -> int:
    """The first state that is not stepped over; the way to it is shortened for the next time."""
    passed: list[int] = []
    while state in onward:
        passed.append(state)
        state = onward[state]
    for step in passed:
        onward[step] = state
    return state
