"""A set of classes in words: class by class while they are few, else by named sets with exceptions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polycal._typing import Bools, Ints
from polycal.auditing.parts import Finding
from polycal.families.questions import SubsetWitness
from polycal.sample import MOST_NAMES


class Part(NamedTuple):
    """A named set, or a class, of a description; without some named sets and classes."""

    name: str
    exceptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} (but not {', '.join(self.exceptions)})" if self.exceptions else self.name


def named_finding(finding: Finding, named: Mapping[str, Ints]) -> Finding:
    """The finding, with its question in words where a set has too many classes to list and named sets help."""
    witness = finding.witness
    if not isinstance(witness, SubsetWitness) or witness.members.size <= MOST_NAMES:
        return finding
    names = tuple(witness.name(c) for c in range(witness.n_classes))
    words = set_words(witness.members, names, named)
    if words is None:
        return finding
    return replace(finding, words=words, reading=replace(finding.reading, question=words))


def set_words(members: Ints, names: tuple[str, ...], named: Mapping[str, Ints]) -> str | None:
    """The question of a set by named sets, with exceptions and how many classes; None if that is no help."""
    parts = describe_set(members, names, named)
    if n_names(parts) > MOST_NAMES:
        return None
    *first, last = map(str, parts)
    listed = f"{', '.join(first)} or {last}" if first else last
    return f"is it {listed} ({members.size:,} classes in all)?"


def describe_set(members: Ints, names: tuple[str, ...], named: Mapping[str, Ints]) -> list[Part]:
    """The set as a union of named sets, each with exceptions, and of classes: one named set after the other.

    Each time the one is taken that saves the most names, or that tells the most classes for each name, the first of
    equals; what is shorter in the end is returned. "Anything" is a named set too. Cost: O(sets k) for each step,
    however many sets there are, since exceptions are looked at only where they may be few.
    """
    sets = _Sets({"anything": np.arange(len(names)), **named}, members, names)
    told = [sets.described(worth) for worth in (_saved, _told)]
    return min(told, key=n_names)


def n_names(parts: list[Part]) -> int:
    """How many names a description has."""
    return sum(1 + len(part.exceptions) for part in parts)


def _saved(n_told: int, n_exceptions: int) -> float:
    return n_told - 1 - n_exceptions


def _told(n_told: int, n_exceptions: int) -> float:
    return n_told / (1 + n_exceptions) - 1


class _Sets:
    """Named sets of classes, beside the one to be described."""

    def __init__(self, named: Mapping[str, Ints], members: Ints, names: tuple[str, ...]) -> None:
        self.titles, self.names = list(named), names
        self.masks = np.zeros((len(named), len(names)), dtype=np.bool_)
        for mask, some in zip(self.masks, named.values(), strict=True):
            mask[some] = True
        self.inside = np.zeros(len(names), dtype=np.bool_)
        self.inside[members] = True
        # Sets that are left out as a whole can be an exception; largest first.
        whole = np.flatnonzero(~(self.masks & self.inside).any(axis=1))
        self.whole = whole[np.argsort(-self.masks[whole].sum(axis=1), kind="stable")]
        self.known: dict[int, tuple[str, ...]] = {}

    def described(self, worth: Callable[[int, int], float]) -> list[Part]:
        """One set after the other, as long as one is worth it, then classes."""
        left, parts = self.inside.copy(), []
        while (best := self._best(left, worth)) is not None:
            parts.append(Part(self.titles[best], self.exceptions(best)))
            left &= ~self.masks[best]
        return [*parts, *(Part(self.names[c]) for c in np.flatnonzero(left))]

    def _best(self, left: Bools, worth: Callable[[int, int], float]) -> int | None:
        """The set that is worth most for the classes left; None if none is worth anything."""
        n_told = (self.masks & left).sum(axis=1)
        best, most = None, 0.0
        for number in np.argsort(-n_told, kind="stable").tolist():
            told = int(n_told[number])
            if worth(told, 0) <= most:
                break
            here = worth(told, len(self.exceptions(number)))
            if here > most:
                best, most = number, here
        return best

    def exceptions(self, number: int) -> tuple[str, ...]:
        """What is not to be described of a set, by named sets that are left out as a whole, and by class."""
        if number not in self.known:
            left, parts = self.masks[number] & ~self.inside, []
            # The place of a set does not change: it is within what is left out, or not.
            for one in self.whole[~(self.masks[self.whole] & ~left).any(axis=1)]:
                if np.count_nonzero(self.masks[one] & left) > 1:
                    parts.append(self.titles[one])
                    left &= ~self.masks[one]
            self.known[number] = (*parts, *(self.names[c] for c in np.flatnonzero(left)))
        return self.known[number]
