"""Where a row comes from, in columns that no file holds: its file, the file's age, and its slice.

To Spark they are partition columns: constant in each file, known to the file index, and free to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from indextables.core.prune.source import FileMask, as_array
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.log.state.snapshot import Snapshot

FILE: Final = "__indextables_file"
"""The number of the row's file in its snapshot."""
SEQ: Final = "__indextables_seq"
"""The age of the row's file: a delta file hides rows of files with a lower number."""
SLICE: Final = "__indextables_slice"
"""The row's slice, by the number of the first file in it."""
COLUMNS: Final = StructType(
    tuple(Field(name, PrimitiveType("long"), nullable=False) for name in (FILE, SEQ, SLICE))
)


@dataclass(frozen=True, eq=False)
class Lineage:
    """The values of these columns, one for each file."""

    file: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]
    slice: npt.NDArray[np.int64]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Lineage:
        """Returns the values for every file of a snapshot, in its order; a file without a slice is a slice of its own."""
        numbers = np.arange(snapshot.num_files)
        encoded = as_array(snapshot.column("file_group")).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        first = np.full(len(encoded.dictionary) + 1, len(numbers))
        np.minimum.at(first, codes, numbers)
        slices = np.where(codes < 0, numbers, first[codes])
        return cls(numbers, snapshot.column("seq").to_numpy(), slices)

    def where(self, mask: FileMask) -> Lineage:
        """Returns the values for these files only; the numbers stay those of the whole snapshot."""
        return Lineage(self.file[mask], self.seq[mask], self.slice[mask])

    def texts(self) -> list[tuple[str, ...]]:
        """Returns the values as partition values are written, one row for each file."""
        columns: list[list[str]] = [
            values.astype(str).tolist() for values in (self.file, self.seq, self.slice)
        ]
        return list(zip(*columns, strict=True))
