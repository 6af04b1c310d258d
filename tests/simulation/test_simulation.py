"""Whole runs of many processes from one seed: nothing is lost, and what was lost once would be seen."""

from __future__ import annotations

import os

import pytest

from simulation.reverted import DEFECTS, first_found
from simulation.run import run, scenario_of, search, shrink

pytestmark = pytest.mark.timeout(3600)  # of other people's making on a busy machine
SEEDS = int(os.environ.get("SIMULATION_SEEDS", "1000"))


def test_a_thousand_runs_lose_nothing():
    """Writers, readers, vacuum, checkpoint, cleanup, repair and swap under faults, kills, power cuts and wrong clocks."""
    done, steps, commits, failed = search(range(SEEDS))
    assert failed is None, (
        f"seed {failed.scenario.seed}: {failed.violations}; "
        f"cd tests && ../.venv/bin/python -m simulation.run --start {failed.scenario.seed} --seeds 1"
    )
    assert done == SEEDS
    assert steps > 60 * done and commits > 2 * done, "the runs do something"


def test_a_seed_reproduces_a_run_exactly():
    """Every call, every fault and every moment."""
    for seed in range(15):
        one, two = (run(scenario_of(seed), keep_trace=True) for _ in range(2))
        assert one.trace == two.trace
        assert one.digest == two.digest


def test_every_kind_of_trouble_happens():
    """In the first seeds already: a promise that nothing tries proves nothing."""
    wanted = {
        "error before", "error after", "kill before", "kill after", "exchange", "LogReplacedError",
        "CommitConflictError", "taken back",
    }  # fmt: skip
    seen: set[str] = set()
    kinds = set()
    for seed in range(300):
        scenario = scenario_of(seed)
        kinds.add((scenario.kind, scenario.keyed))
        lines = run(scenario, keep_trace=True).trace
        seen |= {word for word in wanted - seen if any(word in line for line in lines)}
        if seen == wanted and len(kinds) == 6:
            return
    pytest.fail(f"never happened: {wanted - seen}")


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_that_is_put_back_is_found_within_two_thousand_seeds(defect: str):
    """Each of them lost rows once, and no test saw it."""
    found = first_found(defect, 2000)
    assert found is not None
    number, scenario, violations = found
    assert number <= 2000
    assert violations
    assert not run(scenario).violations, "it is the defect that is found, not something else"


def test_a_failing_run_is_shrunk():
    """To a few lines that a person can read."""
    defect = "1 vacuum and a writer that plans again"
    _, scenario, _ = first_found(defect, 2000)
    with DEFECTS[defect]():
        small = shrink(scenario, tries=4)
        assert run(small).violations
    assert sum(map(len, small.scripts)) < sum(map(len, scenario.scripts))
    assert sum(map(len, small.scripts)) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("start", [10_000, 20_000, 30_000])
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_that_is_put_back_is_found_wherever_the_search_begins(defect: str, start: int):
    """The long version: other seeds."""
    assert first_found(defect, 2000, start) is not None


@pytest.mark.slow
def test_twenty_thousand_runs_lose_nothing():
    """The long version: over a million calls to the store."""
    done, steps, _, failed = search(range(20_000))
    assert failed is None, f"seed {failed.scenario.seed}: {failed.violations}"
    assert done == 20_000 and steps > 1_000_000
