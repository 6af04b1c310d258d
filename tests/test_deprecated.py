"""Old public names keep working, and say what to write instead."""

import pytest

from indextables.log.state.rows import Split
from indextables.plan.merge_rule import Piece
from indextables.plan.slices import PrunedSlices, Slices


@pytest.mark.parametrize(
    ("holder", "old", "new"),
    [
        (Split, "is_log", "is_delta"),
        (Piece, "logs", "deltas"),
        (Slices, "is_log", "is_delta"),
        (PrunedSlices, "logs", "deltas"),
    ],
)
def test_a_renamed_attribute_answers_like_the_new_one_and_names_it(holder, old, new):
    stand_in = type("StandIn", (), {new: "the answer", old: vars(holder)[old]})()
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert getattr(stand_in, old) == "the answer"
    assert hasattr(holder, new) or new in holder.__annotations__
