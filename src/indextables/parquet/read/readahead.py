"""Several streams read ahead by a few threads and handed out in order, with bounded memory."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")
Stream: TypeAlias = Callable[[], Iterable[T]]

_DEPTH: Final = 4
_END: Final = object()


def in_order(streams: Sequence[Stream[T]], *, threads: int) -> Iterator[T]:
    """Every item of every stream, in the order of a plain loop; an error surfaces in its place.

    At most `threads` streams are open at a time, each at most a few items ahead of the consumer.
    """
    if threads < 2 or len(streams) < 2:
        for stream in streams:
            yield from stream()
        return
    stop = threading.Event()
    waiting = iter(streams)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="indextables-read")
    try:
        ahead = deque(_Ahead(stream, pool, stop) for stream in islice(waiting, threads))
        while ahead:
            yield from ahead[0]
            ahead.popleft()
            ahead.extend(_Ahead(stream, pool, stop) for stream in islice(waiting, 1))
    finally:
        # the consumer may stop early: whoever waits for room in a queue must notice
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class _Ahead(Generic[T]):
    """One stream that a thread drains into a short queue."""

    def __init__(self, stream: Stream[T], pool: ThreadPoolExecutor, stop: threading.Event) -> None:
        self._items: queue.Queue[object] = queue.Queue(_DEPTH)
        self._stop = stop
        self._error: BaseException | None = None
        pool.submit(self._drain, stream)

    def __iter__(self) -> Iterator[T]:
        while (item := self._items.get()) is not _END:
            yield item  # type: ignore[misc]
        if self._error is not None:
            raise self._error

    def _drain(self, stream: Stream[T]) -> None:
        try:
            for item in stream():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again in the consumer
            self._error = error
        self._put(_END)

    def _put(self, item: object) -> bool:
        while not self._stop.is_set():
            try:
                self._items.put(item, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False
