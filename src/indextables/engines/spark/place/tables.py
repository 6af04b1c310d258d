"""The options in force for one call: its own over the session's over Hadoop's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pyspark.sql import SparkSession

from indextables.config import PREFIX
from indextables.engines.spark.jvm.gateway import jvm_tools


def settings_of(session: SparkSession, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Every `spark.indextables.*` setting that is stronger than the table's own properties.

    Keys are compared without case, because Spark lower-cases some of them.
    """
    layers = (_hadoop(session), _session(session), options or {})
    found: dict[str, tuple[str, Any]] = {}
    for layer in layers:
        for key, value in layer.items():
            if key.lower().startswith(PREFIX):
                found[key.lower()] = (key, value)
    return dict(found.values())


def _session(session: SparkSession) -> dict[str, str]:
    settings = session._jsparkSession.conf().getAllAsJava()  # noqa: SLF001
    return _read(settings)


def _hadoop(session: SparkSession) -> dict[str, str]:
    conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    found = conf.getPropsWithPrefix(PREFIX)
    return {f"{PREFIX}{name}": value for name, value in _read(found).items()}


def _read(java_map: Any) -> dict[str, str]:
    # one call for the whole map: py4j would make one per entry
    found: dict[str, str] = orjson.loads(jvm_tools().json.writeValueAsString(java_map))
    return found
