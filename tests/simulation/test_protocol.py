"""The protocol as a small machine: no order of its steps loses anything, and each rule is needed."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations_with_replacement

import pytest

from simulation.protocol import Rules, late, search, start

ACTORS = "wckv"


def named(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind}{number}" for number, kind in enumerate(kinds))


@pytest.mark.parametrize("begin", [start, late])
@pytest.mark.parametrize("kinds", [*combinations_with_replacement(ACTORS, 3)], ids="".join)
def test_every_verb_beside_every_other_in_any_order_of_steps(kinds, begin):
    """Three of them at a time, from a young table and beside a writer that has been away for three versions."""
    names = named(kinds) if begin is start else ("w9", *named(kinds))
    _, what, way = search(Rules(), begin(*names))
    assert what is None, way


def test_a_put_into_a_version_that_was_cleaned_away_is_taken_back():
    """It succeeds in the store, and no reader and no writer ever believes it."""
    _, what, way = search(Rules(), late("w0", "k1"))
    assert what is None, way
    _, what, way = search(Rules(looks_at_parent=False), late("w0", "k1"))
    assert what == "w0 was told that it is version 2"


NEEDED = {
    "looks_at_parent": late("w0", "k1"),
    "judged_by_start": start("w0", "w1", "v2"),
    "stale_is_refused": late("w0", "k1"),
    "marks_first": late("w0", "v1"),
}


@pytest.mark.parametrize("rule", [field.name for field in fields(Rules)])
def test_without_any_one_rule_something_is_lost(rule: str):
    """So the search would see it, and with the rule the same machine is right."""
    assert search(Rules(), NEEDED[rule])[1] is None
    assert search(Rules(**{rule: False}), NEEDED[rule])[1] is not None
