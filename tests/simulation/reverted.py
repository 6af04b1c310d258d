"""Defects of the past, put back by hand: the simulator must find each of them.

python -m simulation.reverted "1 vacuum and a writer that plans again"
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from indextables.log.commit import attempt, intent
from indextables.log.open import age
from indextables.ops.repair import swap
from indextables.ops.shared import commit
from simulation.run import Scenario, run, scenario_of

_check_kept, _version, _was_old = intent.check_kept, age.Age.version, age.Age._by_commits


def _by_the_newest_plan(plan: Any, began: int, base: Any, kept_since: Any) -> None:
    """The check looked at the version of the newest plan, not at that of its files."""
    made_for = plan.made_for.version if plan.made_for else began
    _check_kept(plan, made_for, base, lambda version: _Everything())


class _Everything(frozenset):
    def __rsub__(self, other: Any) -> frozenset[str]:
        return frozenset()


@contextmanager
def vacuum_and_a_writer_that_plans_again() -> Iterator[None]:
    with (
        mock.patch.object(attempt, "check_kept", _by_the_newest_plan),
        mock.patch.object(commit, "_check_not_vacuumed", lambda began, now: None),
    ):
        yield


@contextmanager
def a_stale_plan_is_taken_for_a_new_one() -> Iterator[None]:
    """What happened meanwhile was cleaned away, so the old plan was committed as if made for the newest version."""
    with mock.patch.object(attempt, "_unseen", lambda draft, newest: attempt.Rebase()):
        yield


@contextmanager
def any_clock_is_believed() -> Iterator[None]:
    """What is old was said by the commits' own times and the clock of whoever deletes."""

    def version(self: Any, store: Any, listing: Any) -> int | None:
        versions = age.reachable(listing)
        return self._by_commits(store, listing, versions) if versions else None

    with mock.patch.object(age.Age, "version", version):
        yield


@contextmanager
def a_swap_without_a_fence() -> Iterator[None]:
    """A commit between the look and the exchange was lost."""
    with mock.patch.object(swap, "put_up", lambda *_: True):
        yield


def _has(scenario: Scenario, *verbs: str) -> bool:
    return any(
        line.startswith(verb) for script in scenario.scripts for line in script for verb in verbs
    )


RELEVANT: dict[str, Callable[[Scenario], bool]] = {
    "1": lambda s: _has(s, "vacuum now") and not s.swaps,
    "2": lambda s: s.log_retention != "30 days" or _has(s, "truncate"),
    "4": lambda s: max(map(abs, s.skews)) > 2000,
    "5": lambda s: s.swaps,
}
"""Scenarios in which a defect can show at all; the others count as seeds that did not find it."""

DEFECTS: dict[str, Callable[[], Any]] = {
    "1 vacuum and a writer that plans again": vacuum_and_a_writer_that_plans_again,
    "2 a stale plan is taken for a new one": a_stale_plan_is_taken_for_a_new_one,
    "4 any clock is believed": any_clock_is_believed,
    "5 a swap without a fence": a_swap_without_a_fence,
}


def first_found(
    defect: str, seeds: int, start: int = 0
) -> tuple[int, Scenario, tuple[str, ...]] | None:
    """How many seeds it takes to find the defect, and what was seen; None if it is not found."""
    logging.disable(logging.CRITICAL)
    try:
        with DEFECTS[defect]():
            for number, seed in enumerate(range(start, start + seeds), start=1):
                scenario = scenario_of(seed)
                if RELEVANT[defect[0]](scenario) and (found := run(scenario)).violations:
                    return number, found.scenario, found.violations
    finally:
        logging.disable(logging.NOTSET)
    return None


if __name__ == "__main__":
    for name in sys.argv[1:] or DEFECTS:
        print(name, first_found(name, 2000))
