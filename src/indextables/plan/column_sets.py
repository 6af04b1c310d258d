"""Which columns each file of a slice sets: a partial update says nothing of the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.source import FileMask, as_array
from indextables.errors import ProtocolError
from indextables.log.state.rows import loads_extra

TAG: Final = "columns"
"""The tag of a file that sets some columns only: their names as a JSON list."""


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """For all files at once, which columns each sets; most files share their list with many others."""

    lists: tuple[frozenset[str] | None, ...]
    """The different lists; None: every column."""
    which: npt.NDArray[np.int64]
    """For each file, the number of its list."""

    @classmethod
    def of(cls, columns: Iterable[Iterable[str] | None], key: Sequence[str] = ()) -> ColumnSets:
        """Returns the lists of some files, one by one.

        None for a file of whole rows. All have the key.
        """
        numbers: dict[frozenset[str] | None, int] = {}
        wanted = [None if names is None else frozenset((*names, *key)) for names in columns]
        which = [numbers.setdefault(names, len(numbers)) for names in wanted]
        return cls(tuple(numbers), np.array(which, np.int64))

    @classmethod
    def from_tags(cls, extra: Any, partial: FileMask, key: Sequence[str]) -> ColumnSets:
        """Returns the lists in the tags of the files that may be partial.

        `extra` is that column of the files.
        """
        texts = as_array(pc.if_else(pa.array(partial), extra, None)).dictionary_encode()
        found = map(columns_set, texts.dictionary.to_pylist())
        lists = [None if names is None else names.union(key) for names in found]
        which = texts.indices.fill_null(len(lists)).to_numpy(zero_copy_only=False)
        return cls((*lists, None), which.astype(np.int64))

    def setting(self, column: str) -> FileMask:
        """Returns where a file sets this column."""
        sets = np.array([names is None or column in names for names in self.lists], np.bool_)
        chosen: FileMask = sets[self.which]
        return chosen


def columns_set(extra: str | None) -> frozenset[str] | None:
    r"""Returns the columns a file sets, from the fields of its action that have no column; None: all of them.

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
            f"a log file does not say which columns it sets: its tag {TAG!r} is {text!a:.80}",
            hint="upgrade indextables, or compact the table with the version that wrote it",
        )
    return frozenset(names)
