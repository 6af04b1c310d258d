"""JVM functions put together from method handles: Scala's `map` runs them without a callback.

A Python function passed to Scala is called back over a socket for every element. The Java library
can compose existing methods into one function object instead, and a sequence of a hundred thousand
elements is then mapped in a few milliseconds.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, Final

from indextables.engines.spark.jvm.gateway import JvmTools, jvm_tools

_CATALYST: Final = "org.apache.spark.sql.catalyst"
_DIRECTORY: Final = "org.apache.spark.sql.execution.datasources.PartitionDirectory"


class Handles:
    """Compositions of public JVM methods as Scala functions."""

    def __init__(self, tools: JvmTools) -> None:
        self._tools = tools
        self._methods = tools.lookup("java.lang.invoke.MethodHandles")
        self._types = tools.lookup("java.lang.invoke.MethodType")
        self._lookup = self._methods.publicLookup()
        self._int = tools.lookup("java.lang.Integer").TYPE
        self._object = tools.find_class("java.lang.Object")
        self._pair = tools.find_class("scala.Tuple2")
        self._row = tools.find_class(f"{_CATALYST}.InternalRow")
        self._first = self._lookup.findVirtual(self._pair, "_1", self._type(self._object))
        self._second = self._lookup.findVirtual(self._pair, "_2", self._type(self._object))

    def directories_of(self, files: Any) -> Any:
        """A function (partition row, (start, end)) -> PartitionDirectory over that slice of `files`."""
        return self._function(self._directory.bindTo(files))

    def test_of(self, predicate: Any) -> Any:
        """A function partition row -> Boolean of a Catalyst predicate."""
        kind = self._tools.find_class(f"{_CATALYST}.expressions.BasePredicate")
        boolean = self._tools.lookup("java.lang.Boolean").TYPE
        return self._function(
            self._lookup.findVirtual(kind, "eval", self._type(boolean, self._row)).bindTo(predicate)
        )

    @cached_property
    def _directory(self) -> Any:
        """(files, (row, (start, end))) -> PartitionDirectory."""
        tools, methods = self._tools, self._methods
        seq = tools.find_class("scala.collection.immutable.Seq")
        files = tools.find_class("scala.collection.immutable.IndexedSeq")
        directory = tools.find_class(_DIRECTORY)

        cut = self._lookup.findVirtual(files, "slice", self._type(self._object, self._int, self._int))
        cut = cut.asType(self._type(seq, files, self._object, self._object))
        cut = methods.filterArguments(cut, 1, self._handles(self._first, self._second))
        cut = methods.permuteArguments(cut, self._type(seq, files, self._pair), self._ints(0, 1, 1))
        range_of = self._second.asType(self._type(self._pair, self._pair))
        cut = methods.filterArguments(cut, 1, self._handles(range_of))

        void = tools.lookup("java.lang.Void").TYPE
        made = self._lookup.findConstructor(
            tools.find_class(_DIRECTORY), self._type(void, self._row, seq)
        )
        made = methods.collectArguments(made, 1, cut)
        row_of = self._first.asType(self._type(self._row, self._pair))
        made = methods.filterArguments(made, 0, self._handles(row_of))
        return methods.permuteArguments(
            made, self._type(directory, files, self._pair), self._ints(1, 0, 1)
        )

    def _function(self, handle: Any) -> Any:
        function = self._tools.find_class("scala.Function1")
        return self._tools.lookup("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(
            function, handle
        )

    def _type(self, result: Any, *parameters: Any) -> Any:
        # py4j does not pick the overload with a Class[] parameter, so they are added one by one.
        found = self._types.methodType(result)
        for parameter in parameters:
            found = found.appendParameterTypes(self._array("java.lang.Class", parameter))
        return found

    def _handles(self, *handles: Any) -> Any:
        return self._array("java.lang.invoke.MethodHandle", *handles)

    def _ints(self, *numbers: int) -> Any:
        return self._array("int", *numbers)

    def _array(self, kind: str, *items: Any) -> Any:
        gateway = self._tools.gateway
        found = gateway.new_array(getattr(gateway.jvm, kind), len(items))
        for at, item in enumerate(items):
            found[at] = item
        return found


@lru_cache(maxsize=1)
def _handles_of(tools: JvmTools) -> Handles:
    return Handles(tools)


def handles() -> Handles:
    """The functions of this process's JVM, put together once."""
    return _handles_of(jvm_tools())
