"""The Arrow type of an action's body, taken apart once so that reading does not ask for it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from indextables.log.state.retype import conform, without_hollow


@dataclass(frozen=True, eq=False)
class Layout:
    """One type, and the types below it if it is a struct."""

    kind: Any

    @cached_property
    def parts(self) -> Mapping[str, Layout]:
        """The parts of a struct by name, in order; nothing for any other type."""
        return {f.name: Layout(f.type) for f in self.kind} if pa.types.is_struct(self.kind) else {}

    @cached_property
    def structs(self) -> Mapping[str, Layout]:
        """Those of the parts that are structs themselves."""
        return {name: part for name, part in self.parts.items() if pa.types.is_struct(part.kind)}

    @cached_property
    def hollow(self) -> bool:
        """True for a struct with no value anywhere below it: Parquet cannot store such a one."""
        return pa.types.is_struct(self.kind) and all(child.hollow for child in self.parts.values())

    @cached_property
    def patchy(self) -> bool:
        """True if this is hollow, or something below it is."""
        return self.hollow or any(child.patchy for child in self.parts.values())

    def divide(self, value: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """(the members of an object that the type has fields for, at any depth; those it has not)."""
        known, odd = value, {}
        if not value.keys() <= self.parts.keys():
            known = {name: member for name, member in value.items() if name in self.parts}
            odd = {name: member for name, member in value.items() if name not in self.parts}
        for name, part in self.structs.items():
            if isinstance(member := known.get(name), dict):
                below, odd_below = part.divide(member)
                if odd_below:
                    known, odd[name] = {**known, name: below}, odd_below
        return known, {name: odd[name] for name in value if name in odd} if odd else odd

    def columns(self, array: Any) -> list[Any]:
        """The parts of an array of structs; what is hollow is null, so that storing it loses nothing."""
        parts: list[Any] = array.flatten()
        for at, child in enumerate(self.parts.values()):
            if child.patchy:
                parts[at] = child.hollow_is_null(parts[at])
        return parts

    def hollow_is_null(self, column: Any) -> Any:
        """A column of this type, null where it is hollow."""
        if not self.patchy:
            return column
        if self.hollow:
            return pa.nulls(len(column), self.kind)
        if column.offset:
            return conform(conform(column, without_hollow(self.kind)), self.kind)
        # the same buffers under a new roof: nothing is copied
        parts = [child.hollow_is_null(column.field(at)) for at, child in enumerate(self.parts.values())]
        return pa.Array.from_buffers(self.kind, len(column), column.buffers()[:1], children=parts)
