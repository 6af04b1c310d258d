"""Handles on the classes of Spark's JVM, looked up once: a fresh lookup costs ten calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import orjson
from pyspark import SparkContext
from pyspark.sql import SparkSession

from indextables.errors import IndexTablesError

_SPARK_SQL: Final = "org.apache.spark.sql"
_SOURCES: Final = "org.apache.spark.sql.execution.datasources"


@dataclass(frozen=True)
class JvmTools:
    """Classes and functions of one JVM; nothing here holds on to a session."""

    gateway: Any
    pid: int = field(default_factory=os.getpid)

    def lookup(self, name: str) -> Any:
        """Returns the class, package or object of that name, `$` and all."""
        return getattr(self.gateway.jvm, name)

    @cached_property
    def json(self) -> Any:
        """Returns a plain Jackson mapper: JVM values as JSON text."""
        return self.lookup("com.fasterxml.jackson.databind.ObjectMapper")()

    @cached_property
    def field_json(self) -> Any:
        """Returns a Jackson mapper that sets private fields, so that JSON text becomes Hadoop's FileStatus."""
        package = "com.fasterxml.jackson.annotation"
        access = self.lookup(f"{package}.PropertyAccessor")
        visibility = self.lookup(f"{package}.JsonAutoDetect$Visibility")
        mapper = self.lookup("com.fasterxml.jackson.databind.ObjectMapper")()
        mapper.setVisibility(access.ALL, visibility.NONE)
        mapper.setVisibility(access.FIELD, visibility.ANY)
        mapper.setVisibility(access.CREATOR, visibility.ANY)
        return mapper

    @cached_property
    def status_array(self) -> Any:
        """Returns the class FileStatus[]."""
        return self.find_class("[Lorg.apache.hadoop.fs.FileStatus;")

    def find_class(self, name: str) -> Any:
        """Returns the java.lang.Class of that name."""
        return self.lookup("java.lang.Class").forName(name)

    def integers(self, numbers: Any) -> Any:
        """Returns a Scala IndexedSeq of Integers from a numpy array, in one call however long it is."""
        text = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        return self.as_scala(self.json.readValue(text, self._list_class)).toIndexedSeq()

    def positions(self, mask: Any) -> Any:
        """Returns a Scala IndexedSeq of the positions where a numpy mask is set.

        The mask travels as bits.
        """
        bits = np.packbits(mask, bitorder="little").tobytes()
        return self.as_scala(self.bit_set.valueOf(bits).stream().boxed().toList()).toIndexedSeq()

    @cached_property
    def _list_class(self) -> Any:
        return self.find_class("java.util.ArrayList")

    # Methods, not classes: py4j asks the JVM what a name of a class is each time it is used.

    @cached_property
    def as_java(self) -> Any:
        """Returns a Scala collection as a Java one."""
        return self.lookup("scala.jdk.javaapi.CollectionConverters").asJava

    @cached_property
    def as_scala(self) -> Any:
        """Returns a Java collection as a Scala one."""
        return self.lookup("scala.jdk.javaapi.CollectionConverters").asScala

    @cached_property
    def _array_list(self) -> Any:
        return self.lookup("java.util.ArrayList")

    def seq(self, items: Iterable[Any]) -> Any:
        """Returns a Scala Seq of JVM objects."""
        found = self._array_list()
        for item in items:
            found.add(item)
        return self.as_scala(found).toSeq()

    @cached_property
    def none(self) -> Any:
        """Returns Scala's None."""
        return self.lookup("scala.Option").empty()

    @cached_property
    def some(self) -> Any:
        """Returns a value as Scala's Some."""
        return self.lookup("scala.Option").apply

    def strings(self, items: Sequence[str]) -> Any:
        """Returns a String[] of these texts, in one call however many they are."""
        return self.json.readValue(orjson.dumps(items).decode(), self.find_class("[Ljava.lang.String;"))

    def string_map(self, items: Mapping[str, str]) -> Any:
        """Returns an immutable Scala Map of texts."""
        found = self.lookup("java.util.HashMap")()
        for key, value in items.items():
            found.put(key, value)
        return self.lookup("org.apache.spark.api.python.PythonUtils").toScalaMap(found)

    @cached_property
    def path(self) -> Any:
        """Returns Hadoop's Path."""
        return self.lookup("org.apache.hadoop.fs.Path")

    @cached_property
    def bit_set(self) -> Any:
        """Returns a java.util.BitSet, for sending a mask as bytes."""
        return self.lookup("java.util.BitSet")

    @cached_property
    def partition_directory(self) -> Any:
        """Returns files that share their partition values: a row, and their statuses as an array or a Seq."""
        return self.lookup(f"{_SOURCES}.PartitionDirectory").apply

    @cached_property
    def empty_row(self) -> Any:
        """Returns the partition values of a table without partitions."""
        return self.lookup(f"{_SPARK_SQL}.catalyst.InternalRow").empty()

    @cached_property
    def relation(self) -> Any:
        """HadoopFsRelation: a native scan over a file index."""
        return self.lookup(f"{_SOURCES}.HadoopFsRelation")

    @cached_property
    def parquet_format(self) -> Any:
        """Returns Spark's own Parquet reader."""
        return self.lookup(f"{_SOURCES}.parquet.ParquetFileFormat")

    @cached_property
    def dataset(self) -> Any:
        """Returns dataset, whose `ofRows` turns a logical plan into a DataFrame."""
        return self.lookup(f"{_SPARK_SQL}.classic.Dataset")

    @cached_property
    def data_type(self) -> Any:
        """Returns Spark's type, or schema, from its JSON."""
        return self.lookup(f"{_SPARK_SQL}.types.DataType").fromJson


@lru_cache(maxsize=256)
def nullable_schema(tools: JvmTools, json: str) -> Any:
    """Returns Spark's schema of this JSON with every column nullable.

    It never changes, so it is made once.
    """
    return tools.data_type(json).asNullable()


@lru_cache(maxsize=256)
def string_map(tools: JvmTools, items: tuple[tuple[str, str], ...]) -> Any:
    """Returns an immutable Scala Map of texts, made once."""
    return tools.string_map(dict(items))


_applications: Final[WeakKeyDictionary[SparkContext, str]] = WeakKeyDictionary()


def application_of(session: SparkSession) -> str:
    """Returns the application that a session belongs to.

    What was found in one is no good in another.
    """
    context = session.sparkContext
    found = _applications.get(context)
    if found is None:
        found = _applications[context] = str(context.applicationId)
    return found


_tools: dict[int, JvmTools] = {}


def jvm_tools() -> JvmTools:
    """Returns the tools of this process's JVM; in a forked child there is none."""
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        raise IndexTablesError("Spark is not running", hint="create a SparkSession first")
    tools = _tools.get(id(gateway))
    if tools is None or tools.gateway is not gateway:
        _tools.clear()
        tools = _tools[id(gateway)] = JvmTools(gateway)
    if tools.pid != os.getpid():
        raise IndexTablesError(
            "this process was forked from the one that runs Spark and must not use its session",
            hint="use threads, or start the process with multiprocessing's 'spawn'",
        )
    return tools


def use_own_python(session: SparkSession) -> None:
    """On one machine, Python workers run the interpreter that runs here: it has what our functions need.

    Spark takes the first `python3` of the path unless told otherwise.
    """
    context = session.sparkContext
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


# JVM functions put together from method handles: Scala's `map` runs them without a callback.
#
# A Python function passed to Scala is called back over a socket for every element. The Java library
# can compose existing methods into one function object instead, and a sequence of a hundred thousand
# elements is then mapped in a few milliseconds.

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
        """Returns a function (partition row, (start, end)) -> PartitionDirectory over that slice of `files`."""
        return self._function(self._directory.bindTo(files))

    def test_of(self, predicate: Any) -> Any:
        """Returns a function partition row -> Boolean of a Catalyst predicate."""
        kind = self._tools.find_class(f"{_CATALYST}.expressions.BasePredicate")
        boolean = self._tools.lookup("java.lang.Boolean").TYPE
        return self._function(
            self._lookup.findVirtual(kind, "eval", self._type(boolean, self._row)).bindTo(predicate)
        )

    @cached_property
    def _directory(self) -> Any:
        """Returns (files, (row, (start, end))) -> PartitionDirectory."""
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
    """Returns the functions of this process's JVM, put together once."""
    return _handles_of(jvm_tools())
