"""What should be true: who committed what, in which order, and which rows every version has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from simulation.scheduler import DAY, Task, World

Row = tuple[int, int, str | None]
Rows = frozenset[Row]
_COMMIT = re.compile(r"(_transaction_log[a-z_]*)/(\d{18})\.json")
_CHECKPOINT = re.compile(r"(_transaction_log[a-z_]*)/(\d{18})\.checkpoint\.json")
LOG = "_transaction_log"
VACUUM_RETENTION = 7 * DAY
LOG_RETENTION = 30 * DAY


@dataclass(eq=False)
class Op:
    """One call of a process: what it does to the rows, and what became of it."""

    name: str
    change: Callable[[Rows, Log], Rows] = lambda rows, _log: rows
    outcome: str = "unknown"
    """acknowledged, nothing, refused or unknown."""
    version: int | None = None
    log: Log | None = None
    """The log it was acknowledged in."""

    def __repr__(self) -> str:
        return f"{self.name} ({self.outcome} {self.version})"


@dataclass
class Entry:
    """A version of a log, from the moment its commit was there."""

    op: Op
    moment: int
    actions: list[dict[str, Any]]


@dataclass(eq=False)
class Log:
    """One log, whatever its directory is called at the moment."""

    entries: dict[int, Entry] = field(default_factory=dict)
    source: Log | None = None
    """For a repaired log: the log it was made from, up to `source_version`."""
    source_version: int = -1
    strays: dict[int, Op] = field(default_factory=dict)
    """Puts into versions that a cleanup had removed: their writers have to take them back."""
    floor: int = 0
    """No older version needs its files: a vacuum's mark."""
    _rows: dict[int, Rows] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        return max(self.entries, default=-1)

    def rows(self, version: int) -> Rows:
        """The rows that this version must have."""
        if version < 0:
            return frozenset()
        if version not in self._rows:
            before = self.rows(version - 1)
            if self.source is not None and version == 1:
                self._rows[1] = self.source.rows(self.source_version)
            else:
                self._rows[version] = self.entries[version].op.change(before, self)
        return self._rows[version]

    def take_back(self, version: int) -> None:
        del self.entries[version]
        self._rows = {v: rows for v, rows in self._rows.items() if v < version}

    def ops(self) -> Iterator[Op]:
        """Everything the table of this log has gone through."""
        if self.source is not None:
            yield from (self.source.entries[v].op for v in range(self.source_version + 1))
        yield from (entry.op for entry in self.entries.values())


class Record:
    """Told by the disk of every effect; keeps what was violated."""

    def __init__(self, world: World, objects: Callable[[], Iterable[str]]) -> None:
        self.world, self.objects = world, objects
        self.logs: dict[str, Log] = {}
        self.violations: list[str] = []
        self.ops: list[Op] = []
        self.clocks_are_right = True
        self.history_is_cut = False

    @property
    def log(self) -> Log:
        return self.logs.setdefault(LOG, Log())

    def violated(self, text: str) -> None:
        self.violations.append(text)
        self.world.say(f"VIOLATION: {text}")

    # -- what the disk says ------------------------------------------------------------------------

    def wrote(self, task: Task | None, key: str, data: bytes) -> None:
        found = _COMMIT.fullmatch(key)
        if found is None:
            return
        log, version = self.logs.setdefault(found[1], Log()), int(found[2])
        actions = [orjson.loads(line) for line in data.splitlines()]
        op = task.op if task else Op("setup")
        entry = Entry(op, self.world.now, actions)
        if version in log.entries and version < log.newest:
            self.world.say(f"into a version that was cleaned away: {key}")
            log.strays[version] = op
            return
        log.entries[version] = entry
        info = actions[-1]["commitInfo"]
        if info["operation"] == "REPAIR" and version == 0:
            self.logs[found[1]] = log = Log({0: entry}, self.log)
            log.source_version = info["operationParameters"]["sourceVersion"]
        if info["operation"] == "REPLACE LOG":
            entry.op = Op("fence")
        self.world.say(f"committed {found[1]} {version}: {op.name}")
        for action in actions:
            if "vacuum" in action:
                self._check_mark(log, action["vacuum"]["minReadVersion"], op)

    def _check_mark(self, log: Log, mark: int, op: Op) -> None:
        if op.name == "vacuum" and mark > max(self.current_before(log, VACUUM_RETENTION), log.floor):
            self.violated(f"a vacuum gave up version {mark - 1}, which is needed for time travel")
        log.floor = max(log.floor, mark)

    def current_before(self, log: Log, retention: int) -> int:
        """The newest version that was current a whole retention ago."""
        cutoff = self.world.now - retention
        return max((v for v, entry in log.entries.items() if entry.moment <= cutoff), default=0)

    def deletes(self, task: Task | None, key: str) -> None:
        """A file is about to go."""
        if found := _COMMIT.fullmatch(key) or _CHECKPOINT.fullmatch(key):
            self._deletes_log(self.logs.get(found[1], Log()), int(found[2]), key, task)
        elif key in self.live(self.log) and task and not task.op.name.startswith("undo"):
            self.violated(f"{task.op.name} deletes {key}, which a version that is kept has")

    def _deletes_log(self, log: Log, version: int, key: str, task: Task | None) -> None:
        entry = log.entries.get(version)
        if _CHECKPOINT.fullmatch(key) or entry is None:
            return
        if version in log.strays:
            del log.strays[version]
            return
        is_mine = task is not None and (entry.op is task.op or entry.op.name == "fence")
        if version == log.newest and is_mine:
            log.take_back(version)
            self.world.say(f"taken back: {key}")
        elif not self.history_is_cut and version >= self.current_before(log, LOG_RETENTION):
            self.violated(f"{key} is deleted, and within the retention of the log")

    def came_back(self, key: str) -> None:
        """A power cut undid the deletion of a file."""
        found = _COMMIT.fullmatch(key)
        log = self.logs.get(found[1]) if found else None
        if log is not None and int(found[2]) == log.newest + 1:
            log.entries[int(found[2])] = Entry(Op("came back"), self.world.now, [])

    def renamed(self, pairs: dict[str, str]) -> None:
        self.logs = {pairs.get(name, name): log for name, log in self.logs.items()}

    # -- what must hold ----------------------------------------------------------------------------

    def live(self, log: Log) -> set[str]:
        """Files that a version from the floor on has."""
        if log.source is not None and 1 not in log.entries:
            return set()
        kept: set[str] = set()
        now: set[str] = set()
        floor = max(log.floor, self._oldest())
        for version in sorted(log.entries):
            for action in log.entries[version].actions:
                if "remove" in action:
                    now.discard(action["remove"]["path"])
                elif "add" in action:
                    now.add(action["add"]["path"])
                    if version >= floor:
                        kept.add(action["add"]["path"])
            if version <= floor:
                kept = set(now)
        return kept

    def _oldest(self) -> int:
        """The oldest version that the log can still put together."""
        if f"{LOG}/{0:018d}.json" in self.objects():
            return 0
        found = [_CHECKPOINT.fullmatch(key) for key in self.objects() if key.startswith(f"{LOG}/")]
        return min((int(one[2]) for one in found if one), default=0)

    def begin(self, op: Op) -> Op:
        self.ops.append(op)
        return op

    def saw(self, log: Log, version: int, rows: Rows) -> None:
        """A reader has read these rows as this version."""
        if version not in log.entries:
            self.violated(f"a reader saw version {version}, which is not there")
        elif rows != log.rows(version):
            lost, found = log.rows(version) - rows, rows - log.rows(version)
            self.violated(f"version {version} lacks {sorted(lost)} and has {sorted(found)} too many")

    def check_acknowledged(self) -> None:
        """Every acknowledged commit is in the table once, every refused one not at all."""
        done = list(self.log.ops())
        for op in self.ops:
            times = sum(one is op for one in done)
            if op.outcome == "acknowledged" and times != 1:
                self.violated(f"{op} was acknowledged, and is in the table {times} times")
            elif op.outcome in ("refused", "nothing") and times:
                self.violated(f"{op} is in the table {times} times")
            elif times > 1 and not op.name.startswith(("vacuum", "repair", "setup")):
                self.violated(f"{op} is in the table {times} times")
