"""What differs between the versions of Spark, in one place: everything else asks here and knows no version.

Each class is one version of Spark and says what is different from the next newer one. `seam` is the
one that is installed, chosen once, when this module is imported; a version that is not here is an error then,
before anything of PySpark is replaced. Nothing is found out by trying a call.

It is also where methods of PySpark's classes are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pyspark
from py4j.java_gateway import JavaClass, JavaGateway, JavaMember, JavaObject
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from indextables.errors import IndexTablesError

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R")

_DAY: Final = 86_400_000_000
_SQL: Final = "org.apache.spark.sql"
_CATALYST: Final = f"{_SQL}.catalyst"
_EXPRESSIONS: Final = f"{_CATALYST}.expressions"


class Tools(Protocol):
    """What is needed of the JVM here."""

    @property
    def gateway(self) -> JavaGateway:
        """Returns py4j's way into the JVM."""
        ...

    @property
    def empty_row(self) -> JavaObject:
        """Returns a row without values."""
        ...

    @property
    def as_java(self) -> JavaMember | Callable[[JavaObject], JavaObject]:
        """Returns the function that turns a Scala collection into a Java one."""
        ...

    def lookup(self, name: str) -> JavaClass:
        """Returns the class or object of that name."""
        ...

    def find_class(self, name: str) -> JavaObject:
        """Returns the java.lang.Class of that name."""
        ...

    def seq(self, items: Iterable[JavaObject]) -> JavaObject:
        """Returns a Scala Seq."""
        ...

    def map_of(self, items: Mapping[str, JavaObject]) -> JavaObject:
        """Returns a Scala Map."""
        ...


class Spark43:
    """The newest version."""

    name = "4.3"
    classic = f"{_SQL}.classic"
    """The package of the JVM's classes of a session that is not on Spark Connect."""
    classic_python = "pyspark.sql.classic"
    """The package of PySpark's."""
    immutable_seq = "scala.collection.immutable.Seq"
    """What Scala's word `Seq` means in signatures."""
    doubles_quotes = True
    """Whether a doubled quote in a text of SQL is a quote; older versions take it for two texts, written together."""
    reads_narrower = True
    """Whether the Parquet reader widens the numbers of a file to the type of the table."""
    settings_of_writes: Mapping[str, str] = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    }
    """What Spark's Parquet writer asks the session for, whatever the options of a write say."""

    # -- classes of PySpark ----------------------------------------------------------------------------

    @property
    def frame_class(self) -> type:
        """Returns the class of the DataFrames of a classic session."""
        return import_module(f"{self.classic_python}.dataframe").DataFrame  # type: ignore[no-any-return]

    @property
    def column_class(self) -> Callable[[JavaObject], Column]:
        """Returns the class that makes a Column of the JVM's."""
        return import_module(f"{self.classic_python}.column").Column  # type: ignore[no-any-return]

    @property
    def merge_writer(self) -> type | None:
        """Returns the class behind `df.mergeInto`; None where there is none."""
        return import_module("pyspark.sql.merge").MergeIntoWriter  # type: ignore[no-any-return]

    # -- the JVM ---------------------------------------------------------------------------------------

    def as_java(self, tools: Tools) -> JavaMember | Callable[[JavaObject], JavaObject]:
        """Returns the function that turns a Scala collection into a Java one."""
        return tools.lookup("scala.jdk.javaapi.CollectionConverters").asJava

    def as_scala(self, tools: Tools) -> JavaMember:
        """Returns the function that turns a Java list into a Scala one."""
        return tools.lookup("scala.jdk.javaapi.CollectionConverters").asScala

    def settings(self, session: SparkSession, tools: Tools) -> JavaObject:
        """Returns all settings of a session as a Java map."""
        return session._jsparkSession.conf().getAllAsJava()  # noqa: SLF001

    def state(self, builder: JavaObject) -> JavaObject:
        """Returns a reader or writer of the JVM, whose accessors say what was collected."""
        return builder

    def column_of(self, tools: Tools, expression: JavaObject) -> Column:
        """Returns a Catalyst expression as a Column."""
        return self.column_class(tools.lookup(f"{self.classic}.ExpressionUtils").column(expression))

    def expression_of(self, session: SparkSession, column: Column) -> JavaObject:
        """Returns a Column as a Catalyst expression."""
        return session._jsparkSession.expression(column._jc)  # noqa: SLF001

    def condition_of(self, error: Any) -> str:
        """Returns the name of an error's condition, of PySpark's or of the JVM's; empty if it has none."""
        return str(error.getCondition() or "")

    # -- functions that a version lacks ----------------------------------------------------------------

    def try_cast(self, values: Column, kind: T.DataType | str) -> Column:
        """Returns the values cast, NULL where one does not fit."""
        return values.try_cast(kind)

    def is_utf8(self, values: Column) -> Column:
        """Returns whether the texts are UTF-8."""
        return F.is_valid_utf8(values)

    def microseconds_since(self, epoch: Column, values: Column) -> Column:
        """Returns how far times without a zone are from another."""
        return F.timestamp_diff("MICROSECOND", epoch, values)

    def microseconds_after(self, epoch: Column, micros: Column) -> Column:
        """Returns the times without a zone that are that far from another."""
        return F.timestamp_add("MICROSECOND", micros, epoch)

    def metadata(self, rows: DataFrame) -> Column:
        """Returns what Spark knows of a row's file, also beside a column that is called `_metadata`."""
        return rows.metadataColumn("_metadata")

    def to_arrow(self, rows: DataFrame) -> pa.Table:
        """Returns the rows, in this process."""
        return rows.toArrow()

    def from_arrow(self, session: SparkSession, rows: pa.Table) -> DataFrame:
        """Returns the rows as a DataFrame."""
        return session.createDataFrame(rows)

    def arrow_function(self, function: Callable[..., pa.Array], returns: str) -> Callable[..., Column]:
        """Returns a function of Arrow arrays as one of columns."""
        return F.arrow_udf(function, returns)  # type: ignore[attr-defined,no-any-return]

    # -- statements ------------------------------------------------------------------------------------

    def parse(
        self,
        tools: Tools,
        parser: JavaObject,
        text: str,
        values: Mapping[str, JavaObject] | Sequence[JavaObject],
    ) -> JavaObject:
        """Returns a statement with these values, by name or by position, for its parameters."""
        package = f"{_CATALYST}.parser"
        if isinstance(values, Mapping):
            context = tools.lookup(f"{package}.NamedParameterContext")(tools.map_of(values))
        else:
            context = tools.lookup(f"{package}.PositionalParameterContext")(tools.seq(values))
        return parser.parsePlanWithParameters(text, context)

    def with_ctes(self, node: JavaObject, child: JavaObject, relations: JavaObject) -> JavaObject:
        """Returns a WITH of another statement or of other relations."""
        return node.copy(child, relations, node.allowRecursion())

    def immediate_text(self, session: SparkSession, plan: JavaObject) -> JavaObject:
        """Returns the expression whose value EXECUTE IMMEDIATE runs."""
        return plan.sqlStmtStr()

    def recurses(self, node: JavaObject) -> bool:
        """Returns whether the queries of a WITH may read themselves."""
        return bool(node.allowRecursion())

    def view_name(self, tools: Tools, plan: JavaObject) -> str:
        """Returns the name in CACHE TABLE … AS SELECT."""
        return str(plan.tempViewName().eval(tools.empty_row).toString())

    def replace_criteria(self, plan: JavaObject) -> JavaObject | None:
        """Returns what INSERT … REPLACE says that it replaces."""
        found = plan.replaceCriteriaOpt()
        return found.get() if found.isDefined() else None

    def merges_schemas(self, plan: JavaObject) -> bool:
        """Returns whether a MERGE says WITH SCHEMA EVOLUTION."""
        return bool(plan.withSchemaEvolution())

    def collation(self, spec: JavaObject) -> str | None:
        """Returns the collation of a new table."""
        found = spec.collation()
        return str(found.get()) if found.isDefined() else None

    def constraint(self, spec: JavaObject) -> str | None:
        """Returns the name of the first constraint of a new table."""
        found = spec.constraints()
        return str(found.head().name()) if found.nonEmpty() else None

    def new_columns(self, tools: Tools, plan: JavaObject) -> JavaObject:
        """Returns the columns of CREATE TABLE as Spark's StructType."""
        columns = plan.columns()
        fields = [columns.apply(i).toV1Column() for i in range(columns.length())]
        types = tools.lookup(f"{_SQL}.types.DataTypes")
        return types.createStructType(tools.as_java(tools.seq(fields)))

    def clauses(self, plan: JavaObject) -> Iterator[tuple[str, str]]:
        """Yields what columns of CREATE TABLE have besides a name and a type: the column, and the clause."""
        columns = plan.columns()
        for column in (columns.apply(i) for i in range(columns.length())):
            for clause, given in (
                ("a default value", column.defaultValue()),
                ("a generated value", column.generationExpression()),
                ("an identity", column.identityColumnSpec()),
            ):
                if given.isDefined():
                    yield str(column.name()), clause

    # -- df.write, df.writeTo, df.mergeInto ------------------------------------------------------------

    def evolves_schema(self, writer: JavaObject) -> bool:
        """Returns whether `df.write` was told to add columns."""
        return bool(writer._withSchemaEvolution())  # noqa: SLF001

    def clusters(self, writer: JavaObject) -> bool:
        """Returns whether `df.write` was told to cluster."""
        return bool(writer.clusteringColumns().isDefined())

    def clusters_table(self, writer: JavaObject) -> bool:
        """Returns whether `df.writeTo` was told to cluster a new table."""
        return bool(private(writer, "clustering").isDefined())

    def merge_command(self, tools: Tools, writer: JavaObject) -> JavaObject:
        """Returns the MERGE that `df.mergeInto` has collected."""
        return writer.mergeCommand()


class Spark42(Spark43):
    """As 4.3."""

    name = "4.2"


class Spark41(Spark42):
    """INSERT … REPLACE WHERE is a plan of its own; timestamps are stored as the session says."""

    name = "4.1"
    settings_of_writes: Mapping[str, str] = {
        **Spark42.settings_of_writes,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }

    def replace_criteria(self, plan: JavaObject) -> JavaObject | None:
        return None

    def evolves_schema(self, writer: JavaObject) -> bool:
        return False


class Spark40(Spark41):
    """A MERGE has no command to show, parameters are bound in the parsed plan, there are no constraints."""

    name = "4.0"
    doubles_quotes = False

    def arrow_function(self, function: Callable[..., pa.Array], returns: str) -> Callable[..., Column]:
        def on_series(*columns: Any) -> Any:
            import pyarrow as pa  # noqa: PLC0415 - on a worker

            return function(*map(pa.Array.from_pandas, columns)).to_pandas()

        series = import_module("pandas").Series
        on_series.__annotations__ = {"columns": series, "return": series}
        return F.pandas_udf(on_series, returns)  # type: ignore[attr-defined,no-any-return]

    def parse(
        self,
        tools: Tools,
        parser: JavaObject,
        text: str,
        values: Mapping[str, JavaObject] | Sequence[JavaObject],
    ) -> JavaObject:
        package = f"{_CATALYST}.analysis"
        plan = parser.parsePlan(text)
        if isinstance(values, Mapping):
            query = self._by_name(
                tools, tools.lookup(f"{package}.NameParameterizedQuery"), plan, values
            )
        else:
            query = self._by_place(
                tools, tools.lookup(f"{package}.PosParameterizedQuery"), plan, values
            )
        return tools.lookup(f"{package}.BindParameters").apply(query)

    def _by_name(
        self, tools: Tools, query: JavaMember, plan: JavaObject, values: Mapping[str, JavaObject]
    ) -> JavaObject:
        return query(plan, tools.seq(values), tools.seq(values.values()))

    def _by_place(
        self, tools: Tools, query: JavaMember, plan: JavaObject, values: Sequence[JavaObject]
    ) -> JavaObject:
        return query(plan, tools.seq(values))

    def view_name(self, tools: Tools, plan: JavaObject) -> str:
        return str(plan.tempViewName())

    def constraint(self, spec: JavaObject) -> str | None:
        return None

    def immediate_text(self, session: SparkSession, plan: JavaObject) -> JavaObject:
        query = plan.query()
        if query.isRight():
            return query.right().get()
        return self.expression_of(session, F.lit(query.left().get()))

    def merge_command(self, tools: Tools, writer: JavaObject) -> JavaObject:
        relation = tools.lookup(f"{_CATALYST}.analysis.UnresolvedRelation")
        empty = tools.lookup(f"{_SQL}.util.CaseInsensitiveStringMap").empty()
        expression = tools.lookup(f"{self.classic}.ExpressionUtils").expression
        return tools.lookup(f"{_CATALYST}.plans.logical.MergeIntoTable")(
            relation(private(writer, "tableName"), empty, False),
            private(writer, "logicalPlan"),
            expression(private(writer, "on")),
            writer.matchedActions().toSeq(),
            writer.notMatchedActions().toSeq(),
            writer.notMatchedBySourceActions().toSeq(),
            bool(writer.schemaEvolutionEnabled()),
        )


class Spark35(Spark40):
    """Scala 2.12, builders without accessors, no `mergeInto`, and some functions less."""

    name = "3.5"
    classic = _SQL
    classic_python = "pyspark.sql"
    immutable_seq = "scala.collection.Seq"
    merge_writer = None
    reads_narrower = False

    def as_java(self, tools: Tools) -> JavaMember | Callable[[JavaObject], JavaObject]:
        converters = tools.lookup("scala.collection.JavaConverters")
        kinds = (
            ("Map", converters.mapAsJavaMap),
            ("Set", converters.setAsJavaSet),
            ("Seq", converters.seqAsJavaList),
        )
        known = [(tools.find_class(f"scala.collection.{name}"), turn) for name, turn in kinds]

        def converted(items: JavaObject) -> JavaObject:
            return next(turn(items) for kind, turn in known if kind.isInstance(items))

        return converted

    def as_scala(self, tools: Tools) -> JavaMember:
        return tools.lookup("scala.collection.JavaConverters").asScalaBuffer

    def settings(self, session: SparkSession, tools: Tools) -> JavaObject:
        return tools.as_java(session._jsparkSession.conf().getAll())  # noqa: SLF001

    def state(self, builder: JavaObject) -> JavaObject:
        return builder if isinstance(builder, _PrivateState) else _PrivateState(builder)

    def column_of(self, tools: Tools, expression: JavaObject) -> Column:
        return self._made(expression)

    def _made(self, expression: JavaObject) -> Column:
        return self.column_class(_class(f"{_SQL}.Column")(expression))

    def expression_of(self, session: SparkSession, column: Column) -> JavaObject:
        return self._expression(column)

    def _expression(self, column: Column) -> JavaObject:
        return column._jc.expr()  # type: ignore[operator]  # noqa: SLF001

    def condition_of(self, error: Any) -> str:
        return str(error.getErrorClass() or "")

    def _column(self, name: str, *arguments: Any) -> Column:
        """Returns an expression of Catalyst's that this version's PySpark has no function for."""
        given = (self._expression(part) if isinstance(part, Column) else part for part in arguments)
        return self._made(_class(f"{_EXPRESSIONS}.{name}")(*given))

    def try_cast(self, values: Column, kind: T.DataType | str) -> Column:
        text = kind if isinstance(kind, str) else kind.simpleString()
        target = _class(f"{_SQL}.types.DataType").fromDDL(text)
        mode = _class(f"{_EXPRESSIONS}.EvalMode").TRY()
        return self._column("Cast", values, target, _class("scala.Option").empty(), mode)

    def is_utf8(self, values: Column) -> Column:
        return F.encode(F.decode(values.cast("binary"), "UTF-8"), "UTF-8") == values.cast("binary")

    def microseconds_since(self, epoch: Column, values: Column) -> Column:
        return self._column("TimestampDiff", "MICROSECOND", epoch, values)

    def microseconds_after(self, epoch: Column, micros: Column) -> Column:
        # by days and the rest: TIMESTAMPADD takes an INT here, and cuts a longer number silently
        rest = F.pmod(micros, F.lit(_DAY))
        days = F.round((micros - rest) / F.lit(_DAY)).cast("int")
        seconds = (rest.cast("decimal(20,0)") / F.lit(1_000_000)).cast("decimal(18,6)")
        return epoch + F.make_dt_interval(days, F.lit(0), F.lit(0), seconds)

    def metadata(self, rows: DataFrame) -> Column:
        found = rows._jdf.queryExecution().analyzed().metadataOutput()  # noqa: SLF001
        output = (found.apply(i) for i in range(found.length()))
        return self._made(next(each for each in output if each.name() == "_metadata"))

    def to_arrow(self, rows: DataFrame) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

        schema = to_arrow_schema(rows.schema)
        return pa.Table.from_batches(rows._collect_as_arrow(), schema)  # type: ignore[operator]  # noqa: SLF001

    def from_arrow(self, session: SparkSession, rows: pa.Table) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

        schema = from_arrow_schema(rows.schema)
        columns = ([_plain(value, c.type) for value in c.to_pylist()] for c in rows.columns)
        return session.createDataFrame([Row(*each) for each in zip(*columns, strict=True)], schema)

    def _by_name(
        self, tools: Tools, query: JavaMember, plan: JavaObject, values: Mapping[str, JavaObject]
    ) -> JavaObject:
        return query(plan, tools.map_of(values))

    def _by_place(
        self, tools: Tools, query: JavaMember, plan: JavaObject, values: Sequence[JavaObject]
    ) -> JavaObject:
        given = tools.gateway.new_array(tools.lookup(f"{_EXPRESSIONS}.Expression"), len(values))
        for at, value in enumerate(values):
            given[at] = value
        return query(plan, given)

    def with_ctes(self, node: JavaObject, child: JavaObject, relations: JavaObject) -> JavaObject:
        return node.copy(child, relations)

    def recurses(self, node: JavaObject) -> bool:
        return False

    def merges_schemas(self, plan: JavaObject) -> bool:
        return False

    def collation(self, spec: JavaObject) -> str | None:
        return None

    def new_columns(self, tools: Tools, plan: JavaObject) -> JavaObject:
        return plan.tableSchema()

    def clauses(self, plan: JavaObject) -> Iterator[tuple[str, str]]:
        for column in plan.tableSchema().fields():
            for key, clause in (
                ("CURRENT_DEFAULT", "a default value"),
                ("GENERATION_EXPRESSION", "a generated value"),
            ):
                if column.metadata().contains(key):
                    yield str(column.name()), clause

    def clusters(self, writer: JavaObject) -> bool:
        return False

    def clusters_table(self, writer: JavaObject) -> bool:
        return False


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Returns a value of Arrow's as PySpark takes it: a map is a dictionary there, and not a list of pairs."""
    import pyarrow as pa  # noqa: PLC0415

    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    return value


def private(owner: JavaObject, name: str) -> Any:
    """Returns a private field of an object of the JVM, for which it has no accessor."""
    field = owner.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


class _PrivateState:
    """A reader or writer of 3.5 with the accessors that newer ones have."""

    _NAMES: Final[Mapping[str, str]] = {"curmode": "mode"}

    def __init__(self, builder: JavaObject) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.endswith("_$eq"):
            return lambda value: self._set(name.removesuffix("_$eq"), value)
        return lambda: private(self._builder, self._NAMES.get(name, name))

    def _set(self, name: str, value: Any) -> None:
        field = self._builder.getClass().getDeclaredField(name)
        field.setAccessible(True)
        field.set(self._builder, value)


def _class(name: str) -> JavaMember:
    return getattr(SparkContext._gateway.jvm, name)  # type: ignore[union-attr]  # noqa: SLF001


KNOWN: Final[Mapping[str, type[Spark43]]] = {
    version.name: version for version in (Spark35, Spark40, Spark41, Spark42, Spark43)
}


def seam_of(version: str) -> Spark43:
    """Returns what is to be known of a version of Spark.

    Args:
        version: All of it, such as "4.1.4".

    Raises:
        IndexTablesError: It is none of those that were tried.

    Example:
        >>> seam_of("4.0.5").name
        '4.0'
    """
    known = KNOWN.get(".".join(version.split(".")[:2]))
    if known is None:
        raise IndexTablesError(
            f"Spark {version} is not known to this version of indextables, which knows "
            f"{', '.join(KNOWN)}",
            hint="install one of these, or a newer indextables",
        )
    return known()


def check_jvm(session: SparkSession) -> None:
    """Raises IndexTablesError if the JVM of a session runs another version than PySpark is of."""
    found = str(session.version)
    if seam_of(found).name != seam.name:
        raise IndexTablesError(
            f"the session runs Spark {found}, and PySpark {pyspark.__version__} is installed here",
            hint="install the PySpark that belongs to the cluster",
        )


seam: Final = seam_of(pyspark.__version__)
"""What is to be known of the version that is installed."""


# How methods of PySpark's classes are replaced; every call that is not for this library reaches the original.


def replace_method(
    owner: type, name: str, make: Callable[[Callable[..., R]], Callable[..., R]]
) -> None:
    """Puts `make(original)` in place of the method; doing it again changes nothing."""
    original = getattr(owner, name)
    if not getattr(original, "is_indextables", False):
        replacement = wraps(original)(make(original))
        replacement.is_indextables = True  # type: ignore[attr-defined]
        setattr(owner, name, replacement)


def arguments_of(original: Callable[..., object], *args: object, **kwargs: object) -> dict[str, Any]:
    """Returns the arguments of a call of the original method by their names, however they were passed."""
    return dict(signature(original).bind(*args, **kwargs).arguments)


def collect(writer: Any, given: Mapping[str, Any]) -> None:
    """Tells Spark's builder the arguments of a terminal call, as PySpark itself does."""
    writer.options(**given.get("options", {}))
    for name in ("mode", "outputMode", "partitionBy", "format", "queryName"):
        if given.get(name) is not None:
            getattr(writer, name)(given[name])
