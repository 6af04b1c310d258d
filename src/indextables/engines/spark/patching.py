"""Replaces a method of a PySpark class once; every call that is not for this library reaches the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import orjson
from py4j.java_gateway import JavaObject

from indextables.engines.spark.jvm.gateway import jvm_tools

R = TypeVar("R")


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


def options_of(builder: JavaObject) -> dict[str, str]:
    """Returns the options of a JVM reader or writer, spelled as they were given, in one call."""
    tools = jvm_tools()
    given = tools.json.writeValueAsString(tools.as_java(builder.extraOptions().originalMap()))
    return dict(orjson.loads(given))


def names_in(option: JavaObject) -> tuple[str, ...]:
    """Returns a Scala Option[Seq[String]] as a tuple, which is empty if nothing was given."""
    if not option.isDefined():
        return ()
    found = option.get()
    return tuple(str(found.apply(i)) for i in range(found.length()))
