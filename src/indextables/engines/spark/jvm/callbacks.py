"""Python that the JVM calls: its errors come out of PySpark as they were raised, and its results arrive.

py4j turns a Python error in a callback into a Java exception, which PySpark shows with its whole stack.
So the error is kept under a number that travels in the message, and PySpark's converter is taught to
return the error itself.

An object of the JVM that a callback returns travels by its number too. Python forgets the object as
soon as the callback is over, and py4j may tell the JVM so on another connection before the answer is
there. The JVM then finds nothing under that number and takes the answer for null. So what a callback
returns is kept until its thread is called again.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from py4j.java_gateway import JavaGateway, JavaObject
from pyspark.errors.exceptions import captured
from pyspark.java_gateway import ensure_callback_server_started

P = ParamSpec("P")
R = TypeVar("R")

_KEPT: Final = 64
_MARK: Final = re.compile(r"indextables-error:(\d+):")
_errors: Final[OrderedDict[int, BaseException]] = OrderedDict()
_numbers: Final = itertools.count(1)
_lock: Final = threading.Lock()
_on_its_way: Final = threading.local()
"""The last result of each thread, which the JVM has once it calls that thread again."""


class CallbackError(RuntimeError):
    """An error on its way through the JVM; its message names the real one."""


def jvm_callback(method: Callable[P, R]) -> Callable[P, R]:
    """Returns a method that the JVM may call: its errors come out of PySpark unchanged, its results arrive."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            found = method(*args, **kwargs)
        except BaseException as e:
            raise CallbackError(f"indextables-error:{_keep(e)}: {e}") from e
        _on_its_way.result = found
        return found

    return call


def serve_callbacks(gateway: JavaGateway) -> None:
    """Starts py4j's server for callbacks if it does not run, and closes it to all but this session's JVM.

    PySpark starts it without a password, so any process of the machine could ask the file index for the
    paths of a table, or break the session by a wrong answer. Both sides get the secret of the gateway. A
    connection that is open already stays open, because it is the JVM's own.
    """
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    server = gateway._callback_server  # noqa: SLF001
    parameters = getattr(server, "python_parameters", None) or server.callback_server_parameters
    secret = gateway.gateway_parameters.auth_token
    if parameters.auth_token == secret:
        return
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()  # noqa: SLF001
    kind = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient")
    field = kind.getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, secret)
    parameters.auth_token = secret


def _keep(error: BaseException) -> int:
    number = next(_numbers)
    with _lock:
        _errors[number] = error
        while len(_errors) > _KEPT:  # an error that is never asked for must not stay forever
            _errors.popitem(last=False)
    return number


def _kept(text: str) -> BaseException | None:
    found = _MARK.search(text)
    if found is None:
        return None
    with _lock:
        # Not removed, because Spark keeps a failed plan and throws its exception each time it is asked.
        return _errors.get(int(found[1]))


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], CallbackError))


def install(translate: Callable[[JavaObject], BaseException | None]) -> None:
    """Teaches PySpark's converter about these errors; calling it again changes nothing.

    `translate` is asked about every exception of the JVM and its causes; if it returns None, PySpark decides.
    """
    convert = captured.convert_exception
    if getattr(convert, "is_indextables", False):
        return
    # py4j logs every error of a callback with its stack, but the caller gets this one anyway.
    logging.getLogger("py4j.clientserver").addFilter(_is_not_ours)

    @wraps(convert)
    def converted(error: JavaObject) -> BaseException:
        cause = error
        while cause is not None:
            own = _kept(cause.toString()) or translate(cause)
            if own is not None:
                return own
            cause = cause.getCause()
        return convert(error)

    converted.is_indextables = True  # type: ignore[attr-defined]
    captured.convert_exception = converted  # type: ignore[assignment]
