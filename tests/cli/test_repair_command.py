"""`indextables repair`: the dry run, the new log, the swap and its way back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import run as run_command
from support.damage import RealTable, make_table


@pytest.fixture
def table(tmp_path: Path) -> RealTable:
    return make_table(tmp_path / "t", commits=3)


def run(*words: object) -> tuple[int, str, str]:
    return run_command("repair", *words)


def test_a_dry_run_prints_the_plan_in_full_and_writes_nothing(table: RealTable):
    """Excluded paths are listed one by one, with the reason."""
    keys = table.snapshot().column("key").to_pylist()
    for key in keys[:2]:
        (table.root / key).unlink()
    before = table.seal()
    code, out, err = run(table.log, "--dry-run")
    assert code == 0
    assert all(key in out for key in keys[:2])
    assert "nothing was written" in err
    code, out, _ = run(table.log, "--dry-run", "--format", "json")
    facts = json.loads(out)
    assert (facts["kept"], facts["missing"], facts["stats_bytes_saved"]) == (4, keys[:2], 4 * 2 * 2004)
    assert table.seal() == before


def test_a_log_that_cannot_be_repaired_is_exit_code_1_with_file_and_line(table: RealTable):
    """In the dry run and in the repair."""
    with table.commit(2).open("r+b") as file:
        file.truncate(100)
    for words in (["--dry-run"], ["--at-location", table.target]):
        code, out, _ = run(table.log, *words)
        assert code == 1
        assert "000000000000000002.json" in out
    assert not table.target.exists()


def test_repair_prints_the_seven_columns(table: RealTable):
    """As a row for people, as JSON for programs."""
    code, out, _ = run(table.log, "--at-location", table.target, "--format", "json")
    assert code == 0
    assert json.loads(out) == [
        {
            "source_path": str(table.log),
            "target_path": str(table.target),
            "source_version": 3,
            "total_splits": 6,
            "valid_splits": 6,
            "missing_splits": 0,
            "status": "SUCCESS",
        }
    ]
    code, _, err = run(table.log, "--at-location", table.target)
    assert code == 1
    assert "not empty" in err


def test_options_reach_the_repair(table: RealTable):
    """--set takes any option, --drop-stats and --no-validate are what they say."""
    (table.root / table.snapshot().column("key")[0].as_py()).unlink()
    key = "spark.indextables.stats.truncation.enabled"
    code, _, _ = run(table.log, "--no-validate", "--set", f"{key}=false")
    assert code == 0
    assert table.snapshot("_transaction_log_repaired").files().equals(table.snapshot().files())
    assert run(table.log, "--at-location", f"{table.root}/x", "--fail-on-missing")[0] == 1
    assert (
        run(table.log, "--at-location", f"{table.root}/y", "--drop-stats", "--parallelism", 2)[0] == 0
    )
    assert run(table.log, "--set", "novalue")[0] == 2


def test_replace_repairs_swaps_and_can_be_undone(table: RealTable):
    """One command from a bloated log to a lean one in its place, and one back."""
    keys = table.snapshot().column("key")
    code, out, _ = run(table.log, "--replace")
    assert code == 0
    assert "replaced" in out
    assert table.snapshot().version == 1
    assert table.snapshot().column("key").equals(keys)
    assert (table.root / "_transaction_log_backup" / "000000000000000003.json").exists()
    assert "already replaced" in run(table.log, "--replace")[1]
    assert "undone" in run(table.log, "--undo")[1]
    assert table.snapshot().version == 3
    assert "replaced" in run(table.log, "--replace")[1], "the repaired log is still there to be used"


def test_replace_in_an_object_store_says_what_to_run(monkeypatch, table: RealTable):
    """The new log is written; copying it over the old one is left to the user, with the commands."""
    from indextables.cli import repair as command

    store = command.open_store(table.root)
    monkeypatch.setattr(command, "open_store", lambda _: store)
    monkeypatch.setattr(command, "run_repair", lambda *a, **k: _repaired(*a, store=store, **k))
    code, _, err = run("s3://bucket/t/_transaction_log", "--replace")
    assert code == 0
    assert "aws s3 sync s3://bucket/t/_transaction_log_repaired s3://bucket/t/_transaction_log" in err


def _repaired(src, dst, *, store, **options):
    from indextables.ops.repair import repair

    return repair(src, dst, opener=lambda _: store, **options)
