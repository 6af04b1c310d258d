"""The promise for slices: whatever is skipped, read bare or merged, the rows are those of the whole table."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.plan.merge_rule import MergeMode
from indextables.plan.planner import plan_files
from indextables.plan.slices import prune_slices
from indextables.plan.slices import slices_of
from support.conditions import conditions
from support.slice_worlds import (
    COLUMNS,
    SCHEMA,
    VALUES,
    answer,
    answer_of,
    files_of,
    is_wanted,
    table_of,
)

WORLDS = max(80, settings().max_examples * 4 // 5)
CONDITIONS = 4
_conditions = st.lists(conditions(SCHEMA, VALUES), min_size=CONDITIONS, max_size=CONDITIONS)


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_a_plan_of_slices_loses_no_row_and_shows_none_that_is_gone(mode):
    """Random slices and conditions, read by the plan and compared with all files merged."""

    @settings(max_examples=WORLDS)
    @given(files_of(mode), _conditions)
    def check(files, wheres):
        snapshot = table_of(files, mode)
        for where in (None, *wheres):
            plan = plan_files(snapshot, where)
            assert answer_of(plan, files) == answer(files, mode, plan.predicate)
            opened = {s.path for s in plan.files}
            used = [
                *snapshot.splits(plan.bare),
                *(s for p in plan.pieces for s in (*p.files, *p.deltas)),
            ]
            assert opened == {s.path for s in used}
            report = plan.report
            assert report.kept_slices <= report.kept_slices_before <= report.total_slices

    check()


def test_bases_alone_are_read_as_they_are():
    """Read-optimized, with any condition."""

    @settings(max_examples=WORLDS // 3)
    @given(files_of("record"), _conditions)
    def check(files, wheres):
        snapshot = table_of(files, "record")
        bases = [f for f in files if f.block == "base"]
        for where in (None, *wheres):
            plan = plan_files(snapshot, where, read_optimized=True)
            assert answer_of(plan, files) == answer(bases, "record", plan.predicate)

    check()


def test_with_a_merger_nobody_knows_a_slice_is_skipped_by_key_and_partition_only():
    """Whatever values it might make of the others."""
    rows = [
        dict(zip(COLUMNS, found))
        for found in itertools.product(*([*VALUES[c,], None] for c in COLUMNS))
    ]

    @settings(max_examples=WORLDS // 3)
    @given(files_of("record"), _conditions)
    def check(files, wheres):
        snapshot = table_of(files, "record")
        slices = slices_of(snapshot)
        if slices is None:
            return
        groups = snapshot.column("file_group").to_pylist()
        for where in wheres:
            predicate = plan_files(snapshot, where).predicate
            found = prune_slices(slices, snapshot.index(), predicate, MergeMode.CUSTOM)
            for group, code in zip(groups, slices.codes):
                mine = [f for f in files if f"group {f.group}" == group and f.block != "delete"]
                keys = {key for f in mine for key in f.rows}
                if any(is_wanted(predicate, k, row, mine[0].p) for k in keys for row in rows):
                    assert found.kept[code]

    check()
