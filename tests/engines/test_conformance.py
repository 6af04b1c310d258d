"""Every engine answers every query with the rows the Arrow reader gives, and opens no file it need not."""

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.conformance import ENGINES, Engine, conditions, make_table, plain_row, plain_rows, to_sql
from support.sliced_table import Sliced, make_slices

import indextables as it
from indextables.parquet.read.row_filter import to_row_mask
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Compare, IsIn, IsNull, Literal, Not, Predicate, Ref

CONDITIONS = conditions(200)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> it.Table:
    return make_table(tmp_path_factory.mktemp("conformance") / "a table")


@pytest.fixture(scope="module")
def answers(world: it.Table) -> list[dict[int, dict[str, Any]]]:
    return [expected(world, condition) for condition in CONDITIONS]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


def expected(table: it.Table, condition: Predicate) -> dict[int, dict[str, Any]]:
    return plain_rows(table.scan(condition).to_arrow())


def test_engines_give_the_rows_of_the_arrow_reader(
    engine: Engine, world: it.Table, answers: list[dict[int, dict[str, Any]]]
) -> None:
    """Nulls, NaN, decimals, times, nested fields, partitions and evolved schemas mean the same to all."""
    query = engine.open(world.uri)
    for condition, rows in list(zip(CONDITIONS, answers, strict=True))[: engine.asked]:
        assert plain_rows(query(condition)) == rows, to_sql(condition, "duckdb")


@pytest.fixture(scope="module", params=["record", "columns"])
def slices(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sliced:
    return make_slices(tmp_path_factory.mktemp("slices") / request.param, request.param)


class SliceAnswers:
    """From the rows the slices were made of, not from any reader."""

    def __init__(self, slices: Sliced) -> None:
        self.schema = slices.table.schema
        names = slices.table.to_dataset().schema
        self.everything = pa.Table.from_pylist(list(slices.rows.values()), names)
        self.found: dict[int, dict[int, dict[str, Any]]] = {}

    def to(self, number: int) -> dict[int, dict[str, Any]]:
        """The answer to the condition of this number."""
        if number not in self.found:
            mask = to_row_mask(bind(CONDITIONS[number], self.schema), self.everything)
            self.found[number] = plain_rows(self.everything.filter(mask))
        return self.found[number]


@pytest.fixture(scope="module")
def slice_answers(slices: Sliced) -> SliceAnswers:
    return SliceAnswers(slices)


def test_the_arrow_reader_merges_slices(slices: Sliced, slice_answers: SliceAnswers) -> None:
    """Logs that replace, delete and change columns, a key that was widened: the rows they were made of."""
    for number in range(1, 200, 9):
        assert expected(slices.table, CONDITIONS[number]) == slice_answers.to(number)
    assert slices.table.scan().count() == len(slices.rows)


def test_engines_merge_slices(engine: Engine, slices: Sliced, slice_answers: SliceAnswers) -> None:
    """Every engine shows the merged rows, and reads only slices without logs by itself."""
    query = engine.open(slices.table.uri)
    for number in range(1, 200, 18):
        found = plain_rows(query(CONDITIONS[number]))
        assert found == slice_answers.to(number), to_sql(CONDITIONS[number], "duckdb")


@pytest.mark.slow
def test_engines_merge_slices_for_all_conditions(
    engine: Engine, slices: Sliced, slice_answers: SliceAnswers
) -> None:
    """The long version: all two hundred."""
    query = engine.open(slices.table.uri)
    for number, condition in enumerate(CONDITIONS):
        found = plain_rows(query(condition))
        assert found == slice_answers.to(number), to_sql(condition, "duckdb")


def test_read_optimized_reads_base_files_alone(engine: Engine, slices: Sliced) -> None:
    """Rows as they were before any log was written."""
    bases = {i: plain_row(row) for i, row in slices.bases.items()}
    condition = Compare(">=", Ref(("id",)), Literal(0))
    found = engine.open(slices.table.uri, read_optimized=True)(condition)
    assert plain_rows(found) == bases


def test_the_arrow_reader_gives_the_rows_a_full_scan_would(
    world: it.Table, answers: list[dict[int, dict[str, Any]]]
) -> None:
    """The reference itself skips files, so it is held against a reader that skips none."""
    everything = world.scan().to_arrow()
    for condition, rows in zip(CONDITIONS, answers, strict=True):
        mask = to_row_mask(bind(condition, world.schema), everything)
        assert sorted(rows) == sorted(everything.filter(mask)["id"].to_pylist())


def test_the_conditions_are_worth_asking(
    world: it.Table, answers: list[dict[int, dict[str, Any]]]
) -> None:
    """Most of them match something, and most skip something; otherwise the suite would prove little."""
    plans = [world.plan(condition) for condition in CONDITIONS]
    assert sum(plan.report.kept_files < plan.report.total_files for plan in plans) > 80
    assert sum(map(bool, answers)) > 120


SELECTIVE = {
    "an integer": Compare("<", Ref(("id",)), Literal(25)),
    "a widened integer": Compare(">", Ref(("n",)), Literal(57)),
    "a double": Compare("<", Ref(("d",)), Literal(5.0)),
    "a decimal": Compare("<", Ref(("amount",)), Literal(Decimal("0.50"))),
    "a text": Compare(">", Ref(("raw",)), Literal(b"\x0b")),
    "an instant": Compare("<", Ref(("at",)), Literal(dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC))),
    "a nested field": Compare("=", Ref(("place", "code")), Literal(3)),
    "a list": IsIn(Ref(("id",)), (Literal(1), Literal(441))),
    "a partition": Compare("=", Ref(("region",)), Literal("north")),
    "a NULL partition": IsNull(Ref(("day",))),
    "a column that came later": Not(IsNull(Ref(("added",)))),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "t"
    make_table(path)
    return path


def test_a_pruned_file_is_never_opened(engine: Engine, original: Path, tmp_path: Path) -> None:
    """With every pruned file gone the answer is the same; with a kept one gone there is an error."""
    for case, condition in SELECTIVE.items():
        if case in engine.keeps:
            continue
        path = tmp_path / case
        shutil.copytree(original, path)
        table = it.Table(path)
        rows, plan = expected(table, condition), table.plan(condition)
        kept = {split.path for split in plan.files}
        pruned = [split.path for split in table.plan().files if split.path not in kept]
        assert pruned, case
        assert rows, case
        for name in pruned:
            (path / name).unlink()
        assert plain_rows(engine.open(table.uri)(condition)) == rows, case
        (path / min(kept)).unlink()
        with pytest.raises(
            Exception, match=r"(?i)no such file|not in the store|no files found|cannot open"
        ):
            engine.open(table.uri)(condition)


def test_schemas_are_the_tables_own(engine: Engine, world: it.Table) -> None:
    """Column names, their order, and the types, even of columns only newer splits have."""
    found = engine.open(world.uri)(Compare("=", Ref(("id",)), Literal(3))).schema
    assert found.names == list(world.schema.names)
    plain = pa.schema([f.with_type(_plain_type(f.type)) for f in found]).types
    assert plain == [_plain_type(f.type) for f in world.to_dataset().schema]


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Without what engines spell in their own way: views, large types, the zone's name."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind) and kind.tz:
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _plain_type(f.type)) for f in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def test_a_partition_value_of_another_type_is_an_error_in_every_engine(
    engine: Engine, tmp_path: Path
) -> None:
    """Regression: DuckDB's own reader gave rows with NULL where the log says 'soon' for a date."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = it.Table.create(tmp_path / "t", schema, partition_by=["day"])
    table.append(pa.table({"id": [1], "day": [dt.date(2024, 1, 1)]}, schema=schema))
    log = tmp_path / "t" / "_transaction_log"
    lines = b"".join(file.read_bytes() for file in sorted(log.glob("*.json"))).splitlines()
    # the log of another writer, whose protocol promises no trailer: one commit without one
    kept = [line.replace(b'"2024-01-01"', b'"soon"') for line in lines if b"commitInfo" not in line]
    kept = [line.replace(b'"writerFeatures"', b'"unused"') for line in kept]
    shutil.rmtree(log)
    log.mkdir()
    (log / f"{0:018}.json").write_bytes(b"\n".join(kept) + b"\n")
    with pytest.raises(Exception, match="partition value 'soon'"):
        engine.open(str(tmp_path / "t"))(Compare("=", Ref(("id",)), Literal(1)))
