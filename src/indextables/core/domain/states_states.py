"""Three-valued logic over the states of one column: its values, NaN and NULL.

A condition on one column divides the states into those that make it TRUE, FALSE and NULL. Folding
AND, OR and NOT on these sets, and asking statistics only once at the end, keeps what plain bitsets
forget: that both sides of `a = 1 AND a = 2` speak of the same value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indextables.core.domain.states import Cuts, complement, intersection, union


@dataclass(frozen=True, slots=True)
class States:
    """A set of states: values by their cuts, and whether NULL and NaN belong to it."""

    cuts: Cuts = ()
    null: bool = False
    nan: bool = False

    @property
    def is_empty(self) -> bool:
        """No state belongs to it."""
        return not (self.cuts or self.null or self.nan)


NOTHING: Final = States()
ONLY_NULL: Final = States(null=True)


def any_of(sets: Sequence[States]) -> States:
    """States that at least one of the sets holds."""
    return States(union([s.cuts for s in sets]), any(s.null for s in sets), any(s.nan for s in sets))


def all_of(sets: Sequence[States]) -> States:
    """States that every one of the sets holds."""
    return States(
        intersection([s.cuts for s in sets]), all(s.null for s in sets), all(s.nan for s in sets)
    )


def without(universe: States, taken: States) -> States:
    """States of the universe (all values, or none) that are not taken."""
    cuts = complement(taken.cuts, universe.cuts) if universe.cuts else ()
    return States(cuts, universe.null and not taken.null, universe.nan and not taken.nan)


@dataclass(frozen=True, slots=True)
class Truth:
    """For which states a condition may be TRUE, FALSE and NULL; inexact ones overlap."""

    true: States
    false: States
    null: States

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true, self.null)

    @property
    def not_true(self) -> States:
        """For which states the condition may be FALSE or NULL."""
        return any_of([self.false, self.null])


def conjunction(parts: Sequence[Truth]) -> Truth:
    """AND of at least one condition on the same column."""
    if len(parts) == 1:
        return parts[0]
    nowhere_false = all_of([any_of([p.true, p.null]) for p in parts])
    return Truth(
        true=all_of([p.true for p in parts]),
        false=any_of([p.false for p in parts]),
        null=all_of([nowhere_false, any_of([p.null for p in parts])]),
    )


def disjunction(parts: Sequence[Truth]) -> Truth:
    """OR of at least one condition on the same column: the dual of AND."""
    return ~conjunction([~part for part in parts])
