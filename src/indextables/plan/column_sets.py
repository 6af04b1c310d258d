"""Which columns each file of a slice sets, since a partial update says nothing about the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats.columns import FileMask, as_array
from indextables.errors import ProtocolError
from indextables.log.state.rows import loads_extra

TAG: Final = "columns"
"""The tag of a file that does not set all columns; its value is their names as a JSON list."""


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """The columns that each of many files sets; most files share their list of columns with others."""

    lists: tuple[frozenset[str] | None, ...]
    """The distinct lists; None means every column."""
    which: npt.NDArray[np.int64]
    """For each file, the index of its list."""

    @classmethod
    def of(cls, columns: Iterable[Iterable[str] | None], key: Sequence[str] = ()) -> ColumnSets:
        """Returns the lists of these files, each with the key added; None is for a file of whole rows."""
        numbers: dict[frozenset[str] | None, int] = {}
        wanted = [None if names is None else frozenset((*names, *key)) for names in columns]
        which = [numbers.setdefault(names, len(numbers)) for names in wanted]
        return cls(tuple(numbers), np.array(which, np.int64))

    @classmethod
    def from_tags(cls, extra: pa.ChunkedArray, partial: FileMask, key: Sequence[str]) -> ColumnSets:
        """Returns the lists in the tags of those files that may be partial.

        `extra` is the column of this name of all files (see `Snapshot.files`).
        """
        texts = as_array(pc.if_else(pa.array(partial), extra, None)).dictionary_encode()
        found = map(columns_set, texts.dictionary.to_pylist())
        lists = [None if names is None else names.union(key) for names in found]
        which = texts.indices.fill_null(len(lists)).to_numpy(zero_copy_only=False)
        return cls((*lists, None), which.astype(np.int64))

    def setting(self, column: str) -> FileMask:
        """Returns True for each file that sets this column."""
        sets = np.array([names is None or column in names for names in self.lists], np.bool_)
        chosen: FileMask = sets[self.which]
        return chosen


def columns_set(extra: str | None) -> frozenset[str] | None:
    r"""Returns the columns that a file sets, by the `extra` of its row in `Snapshot.files`; None if it sets all.

    >>> sorted(columns_set('{"tags": {"columns": "[\\"id\\", \\"b\\"]"}}'))
    ['b', 'id']
    """
    text = (loads_extra(extra).get("tags") or {}).get(TAG)
    if text is None:
        return None
    try:
        names = json.loads(text)
    except (ValueError, TypeError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ProtocolError(
            f"a delta file does not say which columns it sets: its tag {TAG!r} is {text!a:.80}",
            hint="upgrade indextables, or compact the table with the version that wrote it",
        )
    return frozenset(names)
