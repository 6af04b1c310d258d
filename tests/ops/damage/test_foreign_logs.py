"""Logs of other writers: odd paths, odd statistics, unknown fields; repair keeps what it can read and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from indextables.ops.repair import plan_repair, repair
from support.damage import foreign_add, foreign_log, foreign_metadata

STATS = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0}}


def test_every_field_nobody_knows_survives(tmp_path: Path):
    """Unknown fields of adds and of metadata, tags, and unknown actions are in the new log, in order."""
    metadata = foreign_metadata()
    metadata["metaData"]["colour"] = "blue"
    add = foreign_add(
        tmp_path, "a.parquet", tags={"k": "v"}, splitId=7, deletionVector={"x": [1]}, stats=STATS
    )
    table = foreign_log(
        tmp_path,
        [
            [{"mergeSkip": {"x": 1}}, metadata, {"domainMetadata": {"d": 2}}],
            [add, {"mergeSkip": {"x": 2}}],
        ],
    )
    before = table.seal()
    assert repair(table.log, table.target).status == "SUCCESS"
    first, second = (_actions(table.target / f"{v:018d}.json") for v in (0, 1))
    unknown = [action for action in first if next(iter(action)) in {"mergeSkip", "domainMetadata"}]
    assert unknown == [{"mergeSkip": {"x": 1}}, {"domainMetadata": {"d": 2}}, {"mergeSkip": {"x": 2}}]
    assert next(a for a in first if "metaData" in a)["metaData"]["colour"] == "blue"
    [kept] = [action["add"] for action in second if "add" in action]
    for name in ("tags", "splitId", "deletionVector", "size", "modificationTime", "dataChange"):
        assert kept[name] == add["add"][name], name
    assert table.seal().items() >= before.items()


PATHS = [
    ("a b.parquet", "a b.parquet"),
    ("a%20b.parquet", "a b.parquet"),
    ("100%25.parquet", "100%.parquet"),
    ("grün/Ω.parquet", "grün/Ω.parquet"),
    ("gr%C3%BCn/%CE%A9.parquet", "grün/Ω.parquet"),
    ("day=2024-01-01/x+y=z.parquet", "day=2024-01-01/x+y=z.parquet"),
    ("quote'\".parquet", "quote'\".parquet"),
]


@pytest.mark.parametrize(("path", "key"), PATHS)
def test_paths_in_any_spelling_name_the_same_file(tmp_path: Path, path: str, key: str):
    """Spaces, percent signs and Unicode: the file is found, and found again by the new log."""
    table = foreign_log(tmp_path, [[foreign_metadata()], [foreign_add(tmp_path, path, key=key)]])
    before = table.seal()
    assert repair(table.log, table.target).row()[3:] == (1, 1, 0, "SUCCESS")
    assert table.snapshot("_transaction_log_repaired").column("key").to_pylist() == [key]
    assert table.seal().items() >= before.items()


def test_two_spellings_of_one_path_are_one_split(tmp_path: Path):
    """Relative, percent-encoded, and absolute: one file is one split."""
    adds = [
        foreign_add(tmp_path, "data/a b.parquet"),
        foreign_add(tmp_path, "data/a%20b.parquet", key="data/a b.parquet"),
        foreign_add(tmp_path, f"file://{tmp_path}/data/a%20b.parquet", key="data/a b.parquet"),
    ]
    table = foreign_log(tmp_path, [[foreign_metadata()], *([add] for add in adds)])
    assert repair(table.log, table.target).row()[3:] == (1, 1, 0, "SUCCESS")


def test_a_path_outside_the_table_is_refused_by_file_and_line(tmp_path: Path):
    """A log cannot make a repair look at, or adopt, somebody else's file."""
    add = foreign_add(tmp_path, "inside.parquet")
    add["add"]["path"] = "../../etc/passwd"
    table = foreign_log(tmp_path, [[foreign_metadata()], [add]])
    status = repair(table.log, table.target).status
    assert status.startswith("ERROR: ")
    assert "line 1" in status
    assert "00000000000000000001.json" in status


KINDS = {
    "object": STATS,
    "text": json.dumps(STATS),
    "absent": None,
    "garbage text": "{oops",
    "not an object": [1, 2],
    "one bad bound": {**STATS, "minValues": {"id": "seven", "text": 5}},
    "unknown parts": {**STATS, "tightBounds": True, "minValues": {"id": 1, "later": "x"}},
    "beyond 64 bits": {**STATS, "maxValues": {"id": 2**70}},
}


@pytest.mark.parametrize("stats", KINDS.values(), ids=KINDS)
def test_statistics_in_any_state_never_cost_a_split(tmp_path: Path, stats):
    """What cannot be decoded is unknown, and the split stays; what can is kept."""
    add = foreign_add(tmp_path, "a.parquet", stats=stats)
    table = foreign_log(tmp_path, [[foreign_metadata()], [add, foreign_add(tmp_path, "b.parquet")]])
    expected = table.snapshot().split("a.parquet").stats
    before = table.seal()
    assert repair(table.log, table.target).row()[3:] == (2, 2, 0, "SUCCESS")
    repaired = table.snapshot("_transaction_log_repaired")
    assert repaired.split("a.parquet").stats == expected
    assert table.seal().items() >= before.items()


def test_tokens_that_are_no_json_cost_a_statistic_not_a_split(tmp_path: Path):
    """NaN, a lone surrogate and half a character in a bound: the rest of the line is read."""
    lines = [
        b'{"add":{"path":"a.parquet","size":4,"stats":{"numRecords":1,"minValues":{"score":NaN}}}}',
        b'{"add":{"path":"b.parquet","size":4,"stats":{"minValues":{"text":"\\ud800","id":1}}}}',
        b'{"add":{"path":"c.parquet","size":4,"stats":{"maxValues":{"text":"\xc3","id":2}}}}',
    ]
    for name in "abc":
        (tmp_path / f"{name}.parquet").write_bytes(b"PAR1")
    table = foreign_log(tmp_path, [[foreign_metadata()]])
    table.commit(1, 20).write_bytes(b"\n".join(lines) + b"\n")
    assert repair(table.log, table.target).row()[3:] == (3, 3, 0, "SUCCESS")
    repaired = table.snapshot("_transaction_log_repaired")
    assert repaired.split("b.parquet").stats.min_values == {("id",): 1}
    assert repaired.split("c.parquet").stats.max_values == {("id",): 2}


def test_commits_without_a_checksum_are_read_and_the_plan_says_so(tmp_path: Path):
    """Nothing proves them whole, and nobody should believe that something does."""
    table = foreign_log(tmp_path, [[foreign_metadata()], [foreign_add(tmp_path, "a.parquet")]])
    plan = plan_repair(table.log)
    assert plan.error is None
    assert any("2 commits have no checksum" in note for note in plan.notes)


def test_a_garbled_line_of_another_writer_is_named(tmp_path: Path):
    """Without a checksum the line itself is the evidence."""
    table = foreign_log(tmp_path, [[foreign_metadata()], [foreign_add(tmp_path, "a.parquet")]])
    with table.commit(1, 20).open("ab") as file:
        file.write(b'{"add":{"path":"b.par')
    result = repair(table.log, table.target)
    assert "00000000000000000001.json, line 2: not JSON" in result.status
    assert plan_repair(table.log).unreadable[0].line == 2


def test_a_checkpoint_of_another_writer_that_nothing_connects_is_not_believed(tmp_path: Path):
    """It has no id; commits below it exist, its own does not: something is lost, so it is an ERROR."""
    metadata, add = foreign_metadata(), foreign_add(tmp_path, "a.parquet")
    table = foreign_log(tmp_path, [[metadata], [add]])
    (table.log / f"{7:020d}.checkpoint.json").write_text(
        "".join(json.dumps(action) + "\n" for action in (metadata, add))
    )
    status = repair(table.log, table.target).status
    assert "00000000000000000002.json" in status
    assert "version 2 is missing" in status


def test_a_checkpoint_of_another_writer_is_a_base_once_its_commits_are_cleaned_up(tmp_path: Path):
    """Commits up to a checkpoint may be gone, and statistics may be missing in it."""
    metadata, first = foreign_metadata(), foreign_add(tmp_path, "a.parquet", stats=STATS)
    table = foreign_log(tmp_path, [[metadata], [first], [foreign_add(tmp_path, "b.parquet")]])
    checkpoint = table.log / f"{1:020d}.checkpoint.json"
    lean = {"add": {k: v for k, v in first["add"].items() if k != "stats"}}
    checkpoint.write_text("".join(json.dumps(action) + "\n" for action in (metadata, lean)))
    assert repair(table.log, table.target).row()[2:] == (2, 2, 2, 0, "SUCCESS")
    kept = table.snapshot("_transaction_log_repaired").split("a.parquet").stats
    assert kept.num_records == 3
    table.commit(0, 20).unlink()
    table.commit(1, 20).unlink()
    assert repair(table.log, tmp_path / "again").row()[2:] == (2, 2, 2, 0, "SUCCESS")


def _actions(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
