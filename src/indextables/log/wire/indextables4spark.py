"""The logs of IndexTables4Spark, whose splits are search indexes: what they say in another way than ours.

Its protocol 4 keeps no commits. Each version is a *state*: an Avro file that names manifests, Avro files of adds,
and the adds that no longer count. A state is read as the checkpoint it is. Older logs are JSON like ours. In both, the
statistics of an add stand beside its other fields, as texts, and some of them are no bounds at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any, Final, TypeAlias

import numpy as np
import orjson

from indextables.core.stats.truncation_options import SUFFIX, is_marked
from indextables.core.stats.wire import Omit, decode_value, encode_value
from indextables.core.types import DataType, PrimitiveType, StructType
from indextables.errors import LogCorruptedError, MissingDependencyError, NotATableError
from indextables.log.wire.actions import AVRO_STATE, Metadata, Protocol

Json: TypeAlias = dict[str, Any]

STATE: Final = re.compile(r"state-v(?P<version>[0-9]{20})/_manifest\.avro")
MANIFESTS: Final = "manifests/"
_NAMES: Final = frozenset({"indextables", "indextables4spark", "tantivy4spark"})
_SCHEMA_KEY: Final = "docMappingSchema."
_CUT_FROM: Final = 32
"""A text of this many characters or more may have been cut, and nothing marks it."""
_STRING: Final = PrimitiveType("string")
_SURROGATE: Final = "\ud800"
_RENAMED: Final = frozenset({"minValues", "maxValues", "numRecords", "stats"})
_OF_THE_STATE: Final = frozenset({"addedAtVersion", "addedAtTimestamp"})


def is_search_index(metadata: Metadata) -> bool:
    """Returns whether the splits of a table are search indexes and not Parquet files."""
    form = metadata.extra.get("format")
    provider = form.get("provider") if isinstance(form, Mapping) else None
    return isinstance(provider, str) and provider.lower() in _NAMES


def check_parquet(metadata: Metadata, uri: str = "this table") -> None:
    """Raises NotATableError if the splits are search indexes, whose rows are neither read nor written here."""
    if is_search_index(metadata):
        raise NotATableError(
            f"the splits of {uri} are search indexes of IndexTables4Spark, not Parquet files, so rows are neither "
            "read nor written here",
            hint="use IndexTables4Spark for rows; here its log can be planned on, checked, described and repaired",
            uri=uri,
        )


def is_of_states(name: str) -> bool:
    """Returns whether a file of a log directory belongs to states: a manifest, or Hadoop's checksum of any file."""
    return name.startswith((MANIFESTS, "state-v")) or (name.startswith(".") and name.endswith(".crc"))


# A state as lines of JSON, as if a checkpoint in JSON had been written.


def state_text(get: Callable[[str], bytes], directory: str, key: str) -> bytes:
    """Returns the text of a state; `get` returns the unpacked text or the bytes of a key.

    Raises LogCorruptedError if a file of it is damaged, or is the state of another version than its name says.
    """
    state = next(_records(get(key), key), None)
    found = STATE.fullmatch(key.removeprefix(f"{directory}/"))
    assert found is not None, "only the key of a state comes here"
    if state is None or state.get("stateVersion") != int(found["version"]):
        raise _corrupted(key, "it is not the state of the version in its name")
    lines = [{"protocol": _protocol()}, _metadata(state, get, directory, key)]
    gone = frozenset(state.get("tombstones") or ())
    adds: dict[str, Json] = {}
    for manifest in state["manifests"]:
        path = manifest["path"]
        at = path if path.startswith((MANIFESTS, "state-v")) else f"{key.split('/')[-2]}/{path}"
        for entry in _records(get(f"{directory}/{at}"), at):
            if entry["path"] not in gone:
                adds[entry["path"]] = {"add": _add(entry)}
    if len(adds) != state.get("numFiles", len(adds)):
        raise _corrupted(
            key, f"it counts {state['numFiles']} files, but its manifests have {len(adds)}"
        )
    made = {"commitInfo": {"timestamp": state.get("createdAt"), "operation": "STATE"}}
    return b"\n".join(map(orjson.dumps, [*lines, *adds.values(), made])) + b"\n"


def _protocol() -> Json:
    known = Protocol()
    return {
        "minReaderVersion": known.min_reader,
        "minWriterVersion": known.min_writer,
        "writerFeatures": [AVRO_STATE],
    }


def _metadata(state: Json, get: Callable[[str], bytes], directory: str, key: str) -> Json:
    """Returns the metaData action: in the state if it has one, else in the first commit."""
    found: Json | None = orjson.loads(state["metadata"]) if state.get("metadata") else None
    if found is None:
        lines = get(f"{directory}/{0:020d}.json").splitlines()
        actions = map(orjson.loads, filter(None, lines))
        found = next((action for action in actions if "metaData" in action), None)
    if found is None:
        raise _corrupted(key, "neither it nor the first commit has metaData")
    body = found.get("metaData", found)
    known = {f"{_SCHEMA_KEY}{name}": text for name, text in (state.get("schemaRegistry") or {}).items()}
    return {"metaData": {**body, "configuration": {**(body.get("configuration") or {}), **known}}}


def _add(entry: Json) -> Json:
    return {
        name: value for name, value in entry.items() if value is not None and name not in _OF_THE_STATE
    }


def _records(raw: bytes, key: str) -> Iterator[Json]:
    try:
        import fastavro  # noqa: PLC0415 - few tables need it
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "this log of IndexTables4Spark is kept in Avro files, and the package fastavro is not installed",
            hint="pip install 'indextables[avro]'",
            package="fastavro",
        ) from error
    try:
        for record in fastavro.reader(BytesIO(raw)):
            if not isinstance(record, dict):
                raise _corrupted(key, "it holds no records")
            yield record
    except (ValueError, EOFError, IndexError, KeyError, TypeError, StopIteration) as error:
        raise _corrupted(key, f"it is no Avro file, or a damaged one ({error})") from error


def _corrupted(key: str, reason: str) -> LogCorruptedError:
    name = "/".join(key.split("/")[-2:])
    return LogCorruptedError(f"{name}, line 0: {reason}", file=name, line=0)


# Statistics: texts beside the other fields of an add. Java compared the values, and not all of them.


def stats_of(add: Json, schema: StructType) -> Json | None:
    """Returns the statistics of an add as ours have them, and takes them out of it; None if it has none.

    Only bounds that hold for every row are kept: of types that its writer compares at all, of texts that sort in UTF-16
    as they do in UTF-8, and none of a column with NaN. A long greatest text counts as one that was cut.
    """
    if add.get("stats") is not None or not (
        isinstance(add.get("minValues"), dict) or "numRecords" in add
    ):
        return None
    types = {column.name: column.type for column in schema}
    given = {side: add.pop(side, None) or {} for side in ("minValues", "maxValues")}
    records = add.pop("numRecords", None)
    add.pop("stats", None)
    bounds: dict[str, Json] = {"minValues": {}, "maxValues": {}}
    inexact: dict[str, list[list[str]]] = {"min": [], "max": []}
    for name, dtype in types.items():
        pair = [_bound(given[side].get(name), dtype) for side in bounds]
        if any(value is None for value in pair):
            continue
        for side, value in zip(bounds, pair, strict=True):
            bounds[side][name] = value
            if not isinstance(value, str) or dtype != _STRING:
                continue
            if len(value) >= _CUT_FROM and not is_marked(value):
                inexact[side[:3]].append([name])
                bounds[side][name] += SUFFIX if side == "maxValues" else ""
    return {
        **({} if records is None else {"numRecords": records}),
        **bounds,
        **({"inexact": inexact} if any(inexact.values()) else {}),
    }


def _bound(text: object, dtype: DataType) -> object:
    if not isinstance(text, str) or not isinstance(dtype, PrimitiveType):
        return None
    match dtype.name:
        case "integer" | "long":
            return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None
        case "float" | "double":
            return _number(text, dtype)
        case "boolean":
            return {"true": True, "false": False}.get(text)
        case "string":
            return text if not text or max(text) < _SURROGATE else None
        case "date":
            return text if decode_value(text, dtype) is not None else None
        case "timestamp":
            micros = int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None
            wire = None if micros is None or abs(micros) >= 2**63 else encode_value(micros, dtype)
            return None if isinstance(wire, Omit) else wire
        case _:  # its writer calls any two values of other types equal
            return None


def _number(text: str, dtype: PrimitiveType) -> object:
    try:
        value = float(text)
    except ValueError:
        return None
    if value != value:  # noqa: PLR0124 - NaN
        return None
    wire = encode_value(float(np.float32(value)) if dtype.name == "float" else value, dtype)
    return None if isinstance(wire, Omit) else wire


def spelled(add: Json, schema: StructType) -> Json:
    """Returns the body of an add with its statistics beside the other fields, as IndexTables4Spark reads them."""
    stats = add.pop("stats", None)
    if not isinstance(stats, dict):
        return add
    types = {column.name: column.type for column in schema}
    add.setdefault("partitionValues", {})
    for side in ("minValues", "maxValues"):
        values = dict(stats.get(side) or {})
        for path in (stats.get("inexact") or {}).get(side[:3]) or ():
            values[path[0]] = values[path[0]].removesuffix(SUFFIX)
        add[side] = {name: _text(value, types[name]) for name, value in values.items() if name in types}
    if (records := stats.get("numRecords")) is not None:
        add["numRecords"] = records
    return add


def _text(value: object, dtype: DataType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if dtype == PrimitiveType("timestamp"):
        return str(decode_value(value, dtype))
    return str(value)
