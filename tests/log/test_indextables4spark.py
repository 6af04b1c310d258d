"""Logs of IndexTables4Spark, in Avro states and in JSON: opened, planned on, checked, repaired, never written to."""

import gzip
import json
from hashlib import sha256

import fastavro
import pyarrow as pa
import pytest

import indextables as it
from indextables.core.types import StructType, schema_from_json
from indextables.errors import MissingDependencyError, NotATableError, ProtocolError
from indextables.log.wire.indextables4spark import spelled, stats_of
from support.commands import run, run_json

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in [
                ("id", "integer"),
                ("text", "string"),
                ("score", "double"),
                ("ratio", "float"),
                ("day", "date"),
                ("at", "timestamp"),
                ("ok", "boolean"),
                ("small", "short"),
                ("price", "decimal(10,2)"),
            ]
        ],
    }
)
METADATA = {
    "metaData": {
        "id": "5c4a",
        "name": None,
        "description": None,
        "format": {"provider": "indextables", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1775007203099,
    }
}
PROTOCOL = {
    "protocol": {
        "minReaderVersion": 4,
        "minWriterVersion": 4,
        "readerFeatures": None,
        "writerFeatures": None,
    }
}
_MAYBE_MAP = ["null", {"type": "map", "values": "string"}]
ENTRY = {
    "type": "record",
    "name": "FileEntry",
    "fields": [
        {"name": "path", "type": "string"},
        {"name": "partitionValues", "type": {"type": "map", "values": "string"}},
        {"name": "size", "type": "long"},
        {"name": "modificationTime", "type": "long"},
        {"name": "dataChange", "type": "boolean"},
        {"name": "minValues", "type": _MAYBE_MAP},
        {"name": "maxValues", "type": _MAYBE_MAP},
        {"name": "numRecords", "type": ["null", "long"]},
        {"name": "footerStartOffset", "type": ["null", "long"]},
        {"name": "docMappingRef", "type": ["null", "string"]},
        {"name": "addedAtVersion", "type": "long"},
    ],
}
STATE = {
    "type": "record",
    "name": "StateManifest",
    "fields": [
        {"name": "stateVersion", "type": "long"},
        {"name": "createdAt", "type": "long"},
        {"name": "numFiles", "type": "long"},
        {
            "name": "manifests",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [{"name": "path", "type": "string"}],
                },
            },
        },
        {"name": "tombstones", "type": {"type": "array", "items": "string"}},
        {"name": "schemaRegistry", "type": {"type": "map", "values": "string"}},
        {"name": "metadata", "type": ["null", "string"]},
    ],
}


def entry(root, number, **stats):
    path = root / f"part-{number}.split"
    path.write_bytes(b"x" * (100 + number))
    least = {name: str(value[0]) for name, value in stats.items()}
    most = {name: str(value[1]) for name, value in stats.items()}
    return {
        "path": path.name,
        "partitionValues": {},
        "size": 100 + number,
        "modificationTime": 1775007203011,
        "dataChange": True,
        "minValues": least,
        "maxValues": most,
        "numRecords": 10,
        "footerStartOffset": 50,
        "docMappingRef": "z7Tw",
        "addedAtVersion": 0,
    }


def put(path, schema, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), records, codec="deflate")


def put_state(log, version, manifests, tombstones=(), *, count, metadata=None):
    state = {
        "stateVersion": version,
        "createdAt": 1775007203000 + version,
        "numFiles": count,
        "manifests": [{"path": path} for path in manifests],
        "tombstones": list(tombstones),
        "schemaRegistry": {"z7Tw": "[]"},
        "metadata": metadata,
    }
    put(log / f"state-v{version:020d}" / "_manifest.avro", STATE, [state])
    hint = {
        "version": version,
        "size": count,
        "format": "avro-state",
        "stateDir": f"state-v{version:020d}",
    }
    (log / "_last_checkpoint").write_text(json.dumps(hint))


@pytest.fixture
def table(tmp_path):
    """Three versions: two splits, two more, then one of the first replaced by a tombstone."""
    root = tmp_path / "theirs"
    log = root / "_transaction_log"
    log.mkdir(parents=True)
    text = "\n".join(map(json.dumps, [PROTOCOL, METADATA])) + "\n"
    (log / "00000000000000000000.json").write_bytes(b"\x01\x01" + gzip.compress(text.encode()))
    first = [entry(root, n, id=(n * 10, n * 10 + 9), text=(f"a{n}", f"b{n}")) for n in range(2)]
    second = [entry(root, n, id=(n * 10, n * 10 + 9), text=(f"a{n}", f"b{n}")) for n in range(2, 4)]
    put(log / "manifests" / "manifest-1.avro", ENTRY, first)
    put(log / "manifests" / "manifest-2.avro", ENTRY, second)
    put_state(log, 1, ["manifests/manifest-1.avro"], count=2)
    put_state(log, 2, ["manifests/manifest-1.avro", "manifests/manifest-2.avro"], count=4)
    put_state(
        log, 3, ["manifests/manifest-1.avro", "manifests/manifest-2.avro"], ["part-0.split"], count=3
    )
    return root


def digest(folder):
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_state_is_a_version(table):
    """The newest by default, each older one by its number; tombstones take splits away."""
    found = it.Table(table)
    assert (found.version, found.snapshot().num_files) == (3, 3)
    assert [found.snapshot(version).num_files for version in (1, 2, 3)] == [2, 4, 3]
    assert [entry.version for entry in found.history()] == [3, 2, 1, 0]


def test_a_condition_skips_splits_by_their_statistics(table):
    """Texts in their log, values in ours."""
    found = it.Table(table)
    assert [split.path for split in found.plan("id = 25").files] == ["part-2.split"]
    assert [split.path for split in found.plan("text > 'b2' AND id > 0").files] == ["part-3.split"]


def test_rows_are_refused_in_words(table):
    """Search indexes are no Parquet files; an append would write some beside them."""
    found = it.Table(table)
    for read in (found.to_arrow, found.to_dataset, lambda: it.scan_polars(table), found.count):
        with pytest.raises(NotATableError, match="search indexes of IndexTables4Spark"):
            read()
    before = digest(table)
    rows = pa.table({"id": pa.array([1], pa.int32())})
    with pytest.raises(NotATableError, match="neither read nor written"):
        found.append(rows, merge_schema=True)
    with pytest.raises(ProtocolError, match="Avro states"):
        found.checkpoint()
    assert digest(table) == before


def test_check_and_describe_read_it(table):
    """No commit is missed where there are states."""
    assert it.check_table(table).problems == ()
    assert run_json("describe", table)["version"] == 3
    assert "add" in it.Table(table).describe_log()["action"].to_pylist()


def test_a_repair_writes_what_their_software_reads_and_leaves_the_source_alone(table):
    """Statistics stand beside the other fields, as texts; unknown fields and search schemas are kept."""
    before = digest(table / "_transaction_log")
    done = it.repair(table / "_transaction_log", table / "new")
    assert (done.status, done.source_version, done.total_splits, done.valid_splits) == (
        "SUCCESS",
        3,
        3,
        3,
    )
    assert digest(table / "_transaction_log") == before
    lines = [
        json.loads(line)
        for line in (table / "new" / "000000000000000001.json").read_text().splitlines()
    ]
    add = lines[0]["add"]
    assert add["minValues"] == {"id": "10", "text": "a1"}
    assert add["maxValues"] == {"id": "19", "text": "b1"}
    assert (add["numRecords"], add["footerStartOffset"], add["docMappingRef"]) == (10, 50, "z7Tw")
    assert add["partitionValues"] == {}
    assert "stats" not in add
    first = [
        json.loads(line)
        for line in (table / "new" / "000000000000000000.json").read_text().splitlines()
    ]
    assert first[1]["metaData"]["format"]["provider"] == "indextables"
    assert first[1]["metaData"]["configuration"] == {"docMappingSchema.z7Tw": "[]"}


def test_a_repaired_log_is_read_and_takes_no_parquet(table):
    """Put in place, it shows the same splits and plans the same way; files may be removed, not added."""
    it.repair(table / "_transaction_log", table / "new")
    (table / "_transaction_log").rename(table / "old")
    (table / "new").rename(table / "_transaction_log")
    found = it.Table(table)
    assert [split.path for split in found.plan("id = 25").files] == ["part-2.split"]
    with pytest.raises(NotATableError, match="search indexes"):
        found.append(pa.table({"id": pa.array([1], pa.int32())}), merge_schema=True)


def test_long_texts_are_left_out_of_a_repaired_log(table):
    """As the design of the truncation promises: about 98 % less; whatever strategy is set, none is cut."""
    log = table / "_transaction_log"
    body = [entry(table, n, id=(n, n), text=("a" * 20_000, "b" * 20_000)) for n in range(4, 24)]
    put(log / "manifests" / "manifest-3.avro", ENTRY, body)
    put_state(log, 4, ["manifests/manifest-3.avro"], count=20)
    for strategy in ("drop", "truncate", "bound"):
        config = {"spark.indextables.stats.truncation.strategy": strategy}
        plan = it.plan_repair(log, config=config)
        assert plan.error is None
        target = table / f"new-{strategy}"
        assert it.repair(log, target, config=config).status == "SUCCESS"
        text = (target / "000000000000000001.json").read_text()
        assert len(text) < 20 * 40_000 * 0.02
        adds = [json.loads(line)["add"] for line in text.splitlines()[:-1]]
        assert {add["minValues"]["id"] for add in adds} == {str(n) for n in range(4, 24)}
        assert all("text" not in add["minValues"] for add in adds)


def test_a_log_in_json_with_statistics_beside_is_read_the_same_way(tmp_path):
    """The older logs: commits as ours, adds as theirs."""
    root = tmp_path / "json"
    log = root / "_transaction_log"
    log.mkdir(parents=True)
    plain = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 1}}
    adds = [
        {
            "add": {
                name: value
                for name, value in entry(
                    root, n, id=(n * 10, n * 10 + 9), text=("x" * 9_000, "y")
                ).items()
                if name != "addedAtVersion"
            }
        }
        for n in range(3)
    ]
    (log / "00000000000000000000.json").write_text("\n".join(map(json.dumps, [plain, METADATA])) + "\n")
    (log / "00000000000000000001.json").write_text("\n".join(map(json.dumps, adds)) + "\n")
    assert [split.path for split in it.Table(root).plan("id = 25").files] == ["part-2.split"]
    assert it.repair(log, root / "new").status == "SUCCESS"
    size = sum(path.stat().st_size for path in log.iterdir())
    new = (root / "new" / "000000000000000001.json").stat().st_size
    assert new < size * 0.1


@pytest.mark.parametrize("damage", ["cut", "garbage", "missing", "renamed", "count"])
def test_a_damaged_state_is_named_and_nothing_is_guessed(table, damage):
    """A version that is lost is not replaced by the one before it."""
    log = table / "_transaction_log"
    newest = log / f"state-v{3:020d}" / "_manifest.avro"
    match damage:
        case "cut":
            newest.write_bytes(newest.read_bytes()[:-40])
        case "garbage":
            (log / "manifests" / "manifest-2.avro").write_bytes(b"Obj\x01 no")
        case "missing":
            (log / "manifests" / "manifest-2.avro").unlink()
        case "renamed":
            newest.write_bytes((log / f"state-v{2:020d}" / "_manifest.avro").read_bytes())
        case "count":
            put_state(log, 3, ["manifests/manifest-1.avro"], count=9)
    result = it.repair(log, table / "new")
    assert result.status.startswith("ERROR")
    assert "manifest" in result.status
    assert not (table / "new").exists()
    assert not it.check_table(table).ok
    with pytest.raises(it.errors.IndexTablesError):
        it.Table(table)


def test_without_the_avro_library_the_error_names_the_extra(table, monkeypatch):
    """Not that the log is damaged."""
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(MissingDependencyError, match=r"fastavro") as caught:
        it.Table(table)
    assert "indextables[avro]" in str(caught.value)


def test_the_command_repairs_such_a_log(table):
    """As the user types it."""
    code, out, _ = run("repair", table / "_transaction_log", "--at-location", table / "new")
    assert code == 0
    assert "SUCCESS" in out


FIELDS: StructType = schema_from_json(SCHEMA)


@pytest.mark.parametrize(
    ("column", "least", "most", "expected"),
    [
        ("id", "-5", "7", (-5, 7)),
        ("id", "x", "7", None),
        ("score", "-1.5", "1.0E20", (-1.5, 1e20)),
        ("score", "1.0", "NaN", None),
        ("score", "-Infinity", "0.0", ("-Infinity", 0.0)),
        ("ratio", "0.1", "1.1", (0.10000000149011612, 1.100000023841858)),
        ("ok", "false", "true", (False, True)),
        ("day", "1999-01-01", "2024-02-29", ("1999-01-01", "2024-02-29")),
        ("day", "10000", "20000", None),
        ("at", "0", "1000001", ("1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:01.000001Z")),
        ("text", "a", "\uffee", None),
        ("text", "a", "𝄞", None),
        ("text", "a", "é", ("a", "é")),
        ("small", "1", "1", None),
        ("price", "1.00", "1.00", None),
        ("nope", "1", "2", None),
    ],
)
def test_only_bounds_that_hold_for_every_row_are_kept(column, least, most, expected):
    """Their writer compares few types, texts as UTF-16, and NaN as a number."""
    add = {"path": "p", "minValues": {column: least}, "maxValues": {column: most}, "numRecords": 3}
    found = stats_of(add, FIELDS)
    assert add == {"path": "p"}
    bounds = found["minValues"].get(column), found["maxValues"].get(column)
    assert bounds == (expected or (None, None))
    if expected:
        again = spelled({"path": "p", "stats": found}, FIELDS)
        assert stats_of(again, FIELDS) == found


def test_a_greatest_text_that_may_be_cut_is_a_prefix(table):
    """Thirty-two characters, no mark: what begins with them is not skipped."""
    log = table / "_transaction_log"
    put(log / "manifests" / "manifest-4.avro", ENTRY, [entry(table, 9, text=("a", "m" * 32))])
    put_state(log, 4, ["manifests/manifest-4.avro"], count=1)
    found = it.Table(table)
    assert len(found.plan(f"text = '{'m' * 40}'").files) == 1
    assert len(found.plan("text > 'n'").files) == 0
    assert it.repair(log, table / "new").status == "SUCCESS"
