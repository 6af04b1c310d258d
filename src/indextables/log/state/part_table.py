"""The rows of a Parquet part, of which a plan reads the columns it needs and no others."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from indextables.errors import LogCorruptedError, ObjectNotFoundError, StorageError
from indextables.log.wire.lenient import Place
from indextables.log.wire.names import LogNames
from indextables.storage.base import LogStore


@dataclass(frozen=True, slots=True)
class PartRef:
    """One part as a manifest names it."""

    name: str
    size: int
    crc32: int
    rows: int


class PartTable:
    """The rows of a part, with what `Segment` needs of an Arrow table; a column is read when asked for.

    Every page has its own checksum, so reading a few columns does not need the whole file to be verified.
    """

    def __init__(
        self, store: LogStore, names: LogNames, ref: PartRef, loaded: Any | None = None
    ) -> None:
        self.ref = ref
        self._store = store
        self._key = f"{names.directory}/{ref.name}"
        self._loaded = loaded
        self._columns: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """The number of rows, dead ones included."""
        return self.ref.rows

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the file."""
        return self._file.schema_arrow if self._loaded is None else self._loaded.schema

    def column(self, name: str) -> Any:
        """One column; kept, because keys and sequence numbers are asked for again and again."""
        if self._loaded is not None:
            return self._loaded.column(name)
        if name not in self._columns:
            # a struct without fields is not stored: it says nothing
            known = name in self.schema.names
            self._columns[name] = self._read([name]).column(0) if known else _hollow(self.num_rows)
        return self._columns[name]

    def leaf(self, path: Sequence[str]) -> Any:
        """One part of the statistics, without reading the others."""
        if self._loaded is not None or "stats" in self._columns:
            return pc.struct_field(self.column("stats"), list(path))
        return pc.struct_field(self._read([".".join(["stats", *path])]).column("stats"), list(path))

    def take(self, rows: npt.NDArray[np.int64]) -> Any:
        """These rows (in ascending order); only the row groups they are in are read."""
        if self._loaded is not None:
            return self._loaded.take(rows)
        counts = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(counts)])
        group_of = np.searchsorted(starts, rows, side="right") - 1
        groups = np.unique(group_of)
        skipped = starts[groups] - np.concatenate([[0], np.cumsum(np.asarray(counts)[groups])])[:-1]
        with self._reading() as file:
            table = file.read_row_groups(groups.tolist())
        return table.take(rows - skipped[np.searchsorted(groups, group_of)])

    def filter(self, mask: Any) -> Any:
        """The rows where the mask is set, as a table in memory."""
        return self.whole().filter(mask)

    def set_column(self, index: int, name: Any, column: Any) -> Any:
        """A table in memory with one column replaced."""
        return self.whole().set_column(index, name, column)

    def whole(self) -> Any:
        """All columns of all rows, as a table in memory."""
        return self._loaded if self._loaded is not None else self._read(None)

    def check(self) -> None:
        """Raises unless the part is there with the size its manifest names."""
        try:
            size = self._store.head(self._key).size
        except ObjectNotFoundError:
            raise self._corrupted("it is missing") from None
        if size != self.ref.size:
            raise self._corrupted(f"it has {size} bytes, its manifest says {self.ref.size}")

    def check_bytes(self) -> None:
        """Raises unless every byte is as it was written."""
        self.check()
        if zlib.crc32(self._store.get(self._key)) != self.ref.crc32:
            raise self._corrupted("its checksum is not the one its manifest names")

    @cached_property
    def _file(self) -> Any:
        with self._translated():
            filesystem = self._store.filesystem()
            source = filesystem.open_input_file(self._key)
            return pq.ParquetFile(source, pre_buffer=True, page_checksum_verification=True)

    def _read(self, columns: list[str] | None) -> Any:
        with self._reading() as file:
            return file.read(columns=columns)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._lock, self._translated():
            yield self._file

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (StorageError, LogCorruptedError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise self._corrupted(str(error)) from error

    def _corrupted(self, reason: str) -> LogCorruptedError:
        return Place(self.ref.name, 0).corrupted(f"a part of a checkpoint cannot be read: {reason}")


def _hollow(rows: int) -> Any:
    return pa.chunked_array([pa.nulls(rows, pa.struct([]))])
