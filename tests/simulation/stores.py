"""Stores as they are: a disk with a cache that power cuts empty, one that folds names, and S3."""

from __future__ import annotations

import errno
import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType, PyFileSystem

from indextables.errors import ObjectExistsError, ObjectNotFoundError, StorageError
from indextables.storage.base import ObjectMeta, check_key, check_new_key
from simulation.scheduler import Task, World
from support.folding import _name as folded_name

ROOT = "/simulated/t"
_PAGE = 4


@dataclass(eq=False)
class Held:
    """A directory that is open, and the name that it has now."""

    asked: str
    name: str


class Disk:
    """What all processes share. `spy` is told of every effect, to compare it with what should be."""

    has_own_clock = False
    pages = 0
    """Objects in one answer to a listing; 0: all at once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.unsynced: set[str] = set()
        self.undeletable: dict[str, tuple[bytes, int]] = {}
        """Deleted files that come back if the power goes before their directory is synced."""
        self.held: list[Held] = []
        """Directories that a process has open: they keep what they lead to when names are exchanged."""
        self.spy: Any = None
        world.on_power_cut = self.lose_power

    def real(self, key: str) -> str:
        """The name under which the disk keeps it."""
        return key

    def moment(self, task: Task | None) -> int:
        return self.world.now + (task.skew if task else 0)

    def write(self, task: Task | None, key: str, data: bytes, *, synced: bool) -> None:
        key = self.real(key)
        self.objects[key] = (data, self.moment(task))
        self.undeletable.pop(key, None)
        if not synced:
            self.unsynced.add(key)
            return
        self.unsynced.discard(key)
        directory = key.rpartition("/")[0]
        for gone in [one for one in self.undeletable if one.rpartition("/")[0] == directory]:
            del self.undeletable[gone]

    def remove(self, key: str) -> None:
        key = self.real(key)
        if (found := self.objects.pop(key, None)) is not None:
            self.undeletable[key] = found
            self.unsynced.discard(key)

    def lose_power(self) -> None:
        random = self.world.random
        for key in sorted(self.unsynced):
            data, moment = self.objects[key]
            match random.randrange(3):
                case 0:
                    del self.objects[key]
                case 1:
                    self.objects[key] = (data[: random.randrange(len(data) + 1)], moment)
        for key, found in sorted(self.undeletable.items()):
            if random.random() < 0.5:
                self.objects.setdefault(key, found)
                self.spy.came_back(key)
        self.unsynced.clear()
        self.undeletable.clear()

    # -- directories, for the swap of logs ---------------------------------------------------------

    def exists(self, directory: str) -> bool:
        return any(key.startswith(f"{directory}/") or key == directory for key in self.objects)

    def clear(self, directory: str) -> None:
        """As by hand: nobody uses it."""
        self.objects = {k: v for k, v in self.objects.items() if not k.startswith(f"{directory}/")}
        self.spy.logs.pop(directory, None)

    def rename(self, pairs: dict[str, str]) -> None:
        """Each directory gets its new name, all of them at once."""

        def moved(key: str) -> str:
            top, slash, rest = key.partition("/")
            return pairs.get(top, top) + slash + rest

        self.objects = {moved(key): found for key, found in self.objects.items()}
        self.unsynced = {moved(key) for key in self.unsynced}
        self.undeletable = {moved(key): found for key, found in self.undeletable.items()}
        for one in self.held:
            one.name = pairs.get(one.name, one.name)
        self.spy.renamed(pairs)


class FoldingDisk(Disk):
    """Takes two spellings for one name, and keeps the first one."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._spelled: dict[str, str] = {}

    def real(self, key: str) -> str:
        path, parts = "", []
        for part in key.split("/"):
            path += "/" + (part if part.isascii() and part.islower() else folded_name(part))
            parts.append(self._spelled.setdefault(path, part))
        return "/".join(parts)


class Bucket(Disk):
    """S3: its own clock, listings in pages, answers that get lost, nothing lost in a power cut of a client."""

    has_own_clock = True
    pages = _PAGE

    def moment(self, task: Task | None) -> int:
        return self.world.now

    def lose_power(self) -> None:
        self.unsynced.clear()
        self.undeletable.clear()


class SimulatedStore:
    """One process's way to the disk; each call is a point at which the scheduler decides."""

    def __init__(self, disk: Disk, task: Task | None) -> None:
        self.disk, self.task = disk, task
        self.has_own_clock = disk.has_own_clock

    @property
    def uri(self) -> str:
        return ROOT

    def get(self, key: str) -> bytes:
        return self._call("get", key, lambda: self._find(key)[0])

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._call("get_range", key, lambda: self._find(key)[0][start : start + length])

    def head(self, key: str) -> ObjectMeta:
        return self._call("head", key, lambda: self._meta(self._real(key), key))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        found: list[ObjectMeta] = []
        after = start_after or ""
        while True:
            page = self._call("list", prefix, lambda after=after: self._page(prefix, after))
            found.extend(page)
            if not self.disk.pages or len(page) < self.disk.pages:
                return iter(found)
            after = page[-1].key

    @contextmanager
    def held(self, directory: str) -> Iterator[SimulatedStore]:
        """A disk can hold a directory, a bucket cannot."""
        if self.has_own_clock or not self.disk.exists(directory):
            yield self
            return
        one = Held(directory, directory)
        self.disk.held.append(one)
        try:
            yield _HoldingStore(self, one)
        finally:
            self.disk.held.remove(one)

    def put(self, key: str, data: bytes) -> None:
        check_new_key(key)
        self._call("put", key, lambda: self._write(key, data))

    def put_if_absent(self, key: str, data: bytes) -> None:
        check_new_key(key)

        def effect() -> None:
            if self._real(key) in self.disk.objects:
                raise ObjectExistsError(f"there is already an object {key!r}", key=key)
            self._write(key, data)
            self.disk.spy.wrote(self.task, self._now(key), data)

        self._call("put_if_absent", key, effect)

    def delete(self, key: str) -> None:
        def effect() -> None:
            self.disk.spy.deletes(self.task, self._real(key))
            self.disk.remove(self._now(key))

        self._call("delete", key, effect)

    def sync_files(self, keys: Iterable[str]) -> None:
        names = [*keys]

        def effect() -> None:
            for key in names:
                self._find(key)
                self.disk.unsynced.discard(self._real(key))

        self._call("sync_files", ",".join(names), effect)

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        return iter(())

    def filesystem(self) -> Any:
        return PyFileSystem(_Files(self))

    def write_file(self, key: str, data: bytes) -> None:
        """A data file, written and closed, but not synced."""
        self._call("write", key, lambda: self.disk.write(self.task, key, data, synced=False))

    # -- moving directories, as the swap does ------------------------------------------------------

    def rename_directory(self, one: Path, two: Path) -> None:
        def effect() -> None:
            if self.disk.exists(_top(two)):
                raise FileExistsError(errno.EEXIST, "File exists", str(two))
            self.disk.rename({_top(one): _top(two)})

        self._call("rename", f"{one} {two}", effect)

    def exchange_directories(self, one: Path, two: Path) -> bool:
        pairs = {_top(one): _top(two), _top(two): _top(one)}
        self._call("exchange", f"{one} {two}", lambda: self.disk.rename(pairs))
        return True

    def exists(self, path: Path) -> bool:
        key = str(path.relative_to(ROOT))
        return self._call("exists", key, lambda: self.disk.exists(key))

    # -- the parts ---------------------------------------------------------------------------------

    def _call(self, name: str, key: str, effect: Any) -> Any:
        return self.disk.world.call(f"{name} {key}", effect, lambda fate: self._error(name, key, fate))

    def _error(self, name: str, key: str, fate: str) -> Exception:
        random = self.disk.world.random
        if name == "put_if_absent" and self.has_own_clock and random.random() < 0.5:
            # a retried request that finds its own object, or a 409 although nobody has won
            return ObjectExistsError(f"there is already an object {key!r}", key=key)
        if fate.endswith("before") and random.random() < 0.2:
            return StorageError(f"{key!r}: no space left", key=key, errno=errno.ENOSPC)
        return StorageError(f"{key!r}: {fate} {name}", key=key)

    def _now(self, key: str) -> str:
        """The name that the key has at this moment."""
        return key

    def _real(self, key: str) -> str:
        return self.disk.real(check_key(self._now(key)))

    def _write(self, key: str, data: bytes) -> None:
        self.disk.write(self.task, self._now(key), data, synced=True)

    def _find(self, key: str) -> tuple[bytes, int]:
        return self._object(self._real(key), key)

    def _object(self, real: str, key: str) -> tuple[bytes, int]:
        found = self.disk.objects.get(real)
        if found is None:
            raise ObjectNotFoundError(f"there is no object {key!r}", key=key)
        return found

    def _meta(self, real: str, key: str) -> ObjectMeta:
        data, moment = self._object(real, key)
        return ObjectMeta(key, len(data), moment)

    def _page(self, prefix: str, after: str) -> list[ObjectMeta]:
        keys = sorted(self.disk.objects)
        found = []
        for key in keys[bisect_right(keys, after) :]:
            if key.startswith(prefix):
                found.append(self._meta(key, key))
                if len(found) == self.disk.pages:
                    break
        return found


class _HoldingStore(SimulatedStore):
    """Finds one directory by what is open, whatever its name is by now."""

    def __init__(self, store: SimulatedStore, held: Held) -> None:
        super().__init__(store.disk, store.task)
        self._held = held

    def _now(self, key: str) -> str:
        return self._moved(key, self._held.asked, self._held.name)

    def _page(self, prefix: str, after: str) -> list[ObjectMeta]:
        there = super()._page(self._now(prefix), self._now(after))
        return [
            replace(one, key=self._moved(one.key, self._held.name, self._held.asked)) for one in there
        ]

    @staticmethod
    def _moved(key: str, before: str, now: str) -> str:
        return now + key.removeprefix(before) if key.startswith(f"{before}/") else key


def _top(path: Path) -> str:
    return str(path.relative_to(ROOT))


class _Output(io.BytesIO):
    def __init__(self, store: SimulatedStore, key: str) -> None:
        super().__init__()
        self._store, self._key = store, key

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._store.write_file(self._key, data)

    def __del__(self) -> None:
        """An abandoned file is no file."""


class _Files(FileSystemHandler):
    """A data file is read in one call, so that no thread of Arrow's calls the store."""

    def __init__(self, store: SimulatedStore) -> None:
        self.store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Files) and other.store is self.store

    def __ne__(self, other: object) -> bool:
        return not self == other

    def get_type_name(self) -> str:
        return "simulated"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[Any]:
        found = []
        for path in paths:
            try:
                found.append(FileInfo(path, FileType.File, size=self.store.head(path).size))
            except ObjectNotFoundError:
                found.append(FileInfo(path, FileType.NotFound))
        return found

    def get_file_info_selector(self, selector: FileSelector) -> list[Any]:
        raise NotImplementedError

    def create_dir(self, path: str, recursive: bool) -> None:
        """Nothing to do."""

    def open_input_file(self, path: str) -> Any:
        return pa.PythonFile(io.BytesIO(self.store.get(path)), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return pa.PythonFile(_Output(self.store, path), mode="w")

    def _refuse(self, *_: Any) -> Any:
        raise NotImplementedError

    copy_file = create_dir_contents = delete_dir = delete_dir_contents = _refuse
    delete_file = delete_root_dir_contents = move = open_append_stream = _refuse
