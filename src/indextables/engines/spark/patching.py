"""Replacing one method of a PySpark class, once, so that everything we do not know reaches the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any

import orjson

from indextables.engines.spark.jvm.gateway import jvm_tools


def replace_method(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    """`make(original)` in place of the method; doing it again changes nothing."""
    original = getattr(owner, name)
    if not getattr(original, "is_indextables", False):
        replacement = wraps(original)(make(original))
        replacement.is_indextables = True  # type: ignore[attr-defined]
        setattr(owner, name, replacement)


def arguments_of(original: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Returns the arguments of a call of the original method by their names, given in any form."""
    return dict(signature(original).bind(*args, **kwargs).arguments)


def collect(writer: Any, given: Mapping[str, Any]) -> None:
    """What a terminal call was given, told to Spark's builder as PySpark itself tells it."""
    writer.options(**given.get("options", {}))
    for name in ("mode", "outputMode", "partitionBy", "format", "queryName"):
        if given.get(name) is not None:
            getattr(writer, name)(given[name])


def options_of(builder: Any) -> dict[str, str]:
    """Returns the options of a JVM reader or writer, spelled as they were given.

    One call for all of them.
    """
    tools = jvm_tools()
    given = tools.json.writeValueAsString(tools.as_java(builder.extraOptions().originalMap()))
    return dict(orjson.loads(given))


def names_in(option: Any) -> tuple[str, ...]:
    """Returns a Scala Option[Seq[String]] as a tuple; nothing given is an empty one."""
    if not option.isDefined():
        return ()
    found = option.get()
    return tuple(str(found.apply(i)) for i in range(found.length()))
