"""Handles on the classes of Spark's JVM, looked up once, because a fresh lookup takes ten calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import orjson
from py4j.java_gateway import JavaClass, JavaGateway, JavaMember, JavaObject
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession

from indextables.engines.spark.versions import seam
from indextables.errors import IndexTablesError

_SPARK_SQL: Final = "org.apache.spark.sql"
_SOURCES: Final = "org.apache.spark.sql.execution.datasources"


@dataclass(frozen=True)
class JvmTools:
    """Classes and functions of one JVM; nothing here holds on to a session."""

    gateway: JavaGateway
    pid: int = field(default_factory=os.getpid)

    def lookup(self, name: str) -> JavaClass:
        """Returns the class, package or object of that name, with any `$` in it."""
        return getattr(self.gateway.jvm, name)

    @cached_property
    def json(self) -> JavaObject:
        """Returns a plain Jackson mapper, which writes JVM values as JSON text."""
        return self.lookup("com.fasterxml.jackson.databind.ObjectMapper")()

    @cached_property
    def field_json(self) -> JavaObject:
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
    def status_array(self) -> JavaObject:
        """Returns the class FileStatus[]."""
        return self.find_class("[Lorg.apache.hadoop.fs.FileStatus;")

    def find_class(self, name: str) -> JavaObject:
        """Returns the java.lang.Class of that name."""
        return self.lookup("java.lang.Class").forName(name)

    def integers(self, numbers: npt.NDArray[np.integer]) -> JavaObject:
        """Returns a Scala IndexedSeq of Integers from a numpy array, in one call however long it is."""
        text = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        return self.as_scala(self.json.readValue(text, self._list_class)).toIndexedSeq()

    def positions(self, mask: npt.NDArray[np.bool_]) -> JavaObject:
        """Returns a Scala IndexedSeq of the positions where a numpy mask is set; the mask travels as bits."""
        bits = np.packbits(mask, bitorder="little").tobytes()
        return self.as_scala(self.bit_set.valueOf(bits).stream().boxed().toList()).toIndexedSeq()

    @cached_property
    def _list_class(self) -> JavaObject:
        return self.find_class("java.util.ArrayList")

    # Methods and not classes, because py4j asks the JVM what a name of a class is each time it is used.

    @cached_property
    def as_java(self) -> JavaMember | Callable[[JavaObject], JavaObject]:
        """Returns the function that turns a Scala collection into a Java one."""
        return seam.as_java(self)

    @cached_property
    def as_scala(self) -> JavaMember:
        """Returns the function that turns a Java collection into a Scala one."""
        return seam.as_scala(self)

    @cached_property
    def _array_list(self) -> JavaClass:
        return self.lookup("java.util.ArrayList")

    def seq(self, items: Iterable[JavaObject]) -> JavaObject:
        """Returns a Scala Seq of JVM objects."""
        found = self._array_list()
        for item in items:
            found.add(item)
        return self.as_scala(found).toSeq()

    @cached_property
    def cte_tag(self) -> JavaObject:
        """Returns the mark of a relation that is a query of a WITH clause."""
        return self.lookup(f"{_SPARK_SQL}.catalyst.trees.TreeNodeTag")("indextables.cte")

    @cached_property
    def none(self) -> JavaObject:
        """Returns Scala's None."""
        return self.lookup("scala.Option").empty()

    @cached_property
    def some(self) -> JavaMember:
        """Returns the function that wraps a value in Scala's Some."""
        return self.lookup("scala.Option").apply

    def strings(self, items: Sequence[str]) -> JavaObject:
        """Returns a String[] of these texts, in one call however many they are."""
        return self.json.readValue(orjson.dumps(items).decode(), self.find_class("[Ljava.lang.String;"))

    def map_of(self, items: Mapping[str, str] | Mapping[str, JavaObject]) -> JavaObject:
        """Returns an immutable Scala Map."""
        found = self.lookup("java.util.HashMap")()
        for key, value in items.items():
            found.put(key, value)
        return self.lookup("org.apache.spark.api.python.PythonUtils").toScalaMap(found)

    @cached_property
    def path(self) -> JavaClass:
        """Returns Hadoop's class Path."""
        return self.lookup("org.apache.hadoop.fs.Path")

    @cached_property
    def bit_set(self) -> JavaClass:
        """Returns the class java.util.BitSet, with which a mask is sent as bytes."""
        return self.lookup("java.util.BitSet")

    @cached_property
    def partition_directory(self) -> JavaMember:
        """Returns the function that makes a PartitionDirectory of a row and the statuses of its files."""
        return self.lookup(f"{_SOURCES}.PartitionDirectory").apply

    @cached_property
    def empty_row(self) -> JavaObject:
        """Returns the partition values of a table without partitions."""
        return self.lookup(f"{_SPARK_SQL}.catalyst.InternalRow").empty()

    @cached_property
    def relation(self) -> JavaClass:
        """Returns the class HadoopFsRelation, a native scan over a file index."""
        return self.lookup(f"{_SOURCES}.HadoopFsRelation")

    @cached_property
    def parquet_format(self) -> JavaClass:
        """Returns the class of Spark's own Parquet reader."""
        return self.lookup(f"{_SOURCES}.parquet.ParquetFileFormat")

    @cached_property
    def dataset(self) -> JavaClass:
        """Returns the class Dataset, whose `ofRows` turns a logical plan into a DataFrame."""
        return self.lookup(f"{seam.classic}.Dataset")

    @cached_property
    def data_type(self) -> JavaMember:
        """Returns the function that reads a Spark type, or schema, from its JSON."""
        return self.lookup(f"{_SPARK_SQL}.types.DataType").fromJson


@lru_cache(maxsize=256)
def nullable_schema(tools: JvmTools, json: str) -> JavaObject:
    """Returns Spark's schema of this JSON with every column nullable; it never changes, so it is made once."""
    return tools.data_type(json).asNullable()


@lru_cache(maxsize=256)
def string_map(tools: JvmTools, items: tuple[tuple[str, str], ...]) -> JavaObject:
    """Returns an immutable Scala Map of texts, made once."""
    return tools.map_of(dict(items))


_applications: Final[WeakKeyDictionary[SparkContext, str]] = WeakKeyDictionary()


def application_of(session: SparkSession) -> str:
    """Returns the id of the application that a session belongs to; what was looked up in one is no good in another."""
    context = session.sparkContext
    found = _applications.get(context)
    if found is None:
        found = _applications[context] = str(context.applicationId)
    return found


_tools: dict[int, JvmTools] = {}


def jvm_tools() -> JvmTools:
    """Returns the tools of this process's JVM; IndexTablesError if Spark does not run or this process was forked."""
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
    """Makes Python workers on this machine run this interpreter, which has the packages they need.

    Spark takes the first `python3` of the path unless told otherwise.
    """
    context = session.sparkContext
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


# JVM functions composed of method handles, which Scala's `map` runs without calling Python.
#
# A Python function passed to Scala is called over a socket for every element. The Java library can
# compose existing methods into one function object instead, which maps a hundred thousand elements in
# a few milliseconds.

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

    def directories_of(self, files: JavaObject) -> JavaObject:
        """Returns a function (partition row, (start, end)) -> PartitionDirectory of these positions of `files`."""
        return self._function(self._directory.bindTo(files))

    def test_of(self, predicate: JavaObject) -> JavaObject:
        """Returns a function partition row -> Boolean for a Catalyst predicate."""
        kind = self._tools.find_class(f"{_CATALYST}.expressions.BasePredicate")
        boolean = self._tools.lookup("java.lang.Boolean").TYPE
        return self._function(
            self._lookup.findVirtual(kind, "eval", self._type(boolean, self._row)).bindTo(predicate)
        )

    @cached_property
    def _directory(self) -> JavaObject:
        """Returns the method handle (files, (row, (start, end))) -> PartitionDirectory."""
        tools, methods = self._tools, self._methods
        seq = tools.find_class(seam.immutable_seq)
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

    def _function(self, handle: JavaObject) -> JavaObject:
        function = self._tools.find_class("scala.Function1")
        return self._tools.lookup("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(
            function, handle
        )

    def _type(self, result: JavaObject, *parameters: JavaObject) -> JavaObject:
        # py4j does not find the overload with a Class[] parameter, so types are added one by one.
        found = self._types.methodType(result)
        for parameter in parameters:
            found = found.appendParameterTypes(self._array("java.lang.Class", parameter))
        return found

    def _handles(self, *handles: JavaObject) -> JavaObject:
        return self._array("java.lang.invoke.MethodHandle", *handles)

    def _ints(self, *numbers: int) -> JavaObject:
        return self._array("int", *numbers)

    def _array(self, kind: str, *items: object) -> JavaObject:
        gateway = self._tools.gateway
        found = gateway.new_array(getattr(gateway.jvm, kind), len(items))
        for at, item in enumerate(items):
            found[at] = item
        return found


@lru_cache(maxsize=1)
def _handles_of(tools: JvmTools) -> Handles:
    return Handles(tools)


def handles() -> Handles:
    """Returns the composed functions of this process's JVM, made once."""
    return _handles_of(jvm_tools())


# Columns of a DataFrame as its own attributes, so that no name is ambiguous.


def column_of(expression: JavaObject) -> Column:
    """Returns a Catalyst expression as a Column; names in it are resolved where the column is used."""
    return seam.column_of(jvm_tools(), expression)


def attributes_of(frame: DataFrame) -> list[Column]:
    """Returns the columns of a DataFrame in their order, even if several have one name."""
    return [column_of(attribute) for attribute in each(_output(frame))]


def columns_in(frame: DataFrame) -> dict[str, Column]:
    """Returns the columns of a DataFrame by name."""
    return {attribute.name(): column_of(attribute) for attribute in each(_output(frame))}


def _output(frame: DataFrame) -> JavaObject:
    return frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001


def each(items: JavaObject) -> Iterator[JavaObject]:
    """Yields the items of a Scala sequence."""
    return (items.apply(i) for i in range(items.length()))


def options_of(builder: JavaObject) -> dict[str, str]:
    """Returns the options of a JVM reader or writer, spelled as they were given, in one call."""
    tools = jvm_tools()
    given = seam.state(builder).extraOptions().originalMap()
    return dict(orjson.loads(tools.json.writeValueAsString(tools.as_java(given))))


def names_in(option: JavaObject) -> tuple[str, ...]:
    """Returns a Scala Option[Seq[String]] as a tuple, which is empty if nothing was given."""
    return tuple(map(str, each(option.get()))) if option.isDefined() else ()


def quoted(name: str) -> str:
    """Returns a column's name as an expression, whatever dots and backticks it has."""
    return "`" + name.replace("`", "``") + "`"
