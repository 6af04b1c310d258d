"""Commit, checkpoint, cleanup and vacuum as a machine small enough to read, searched state by state.

The table holds files by name; a commit of version n adds one file of its writer's and may remove one. Everybody
acts in the steps that a store knows: a put if absent, a read of what is there, a delete of one object. The
search visits every state that any order of these steps can reach.

    writer     read → write file → put → look at the version before → acknowledge or take back
    cleanup    read → delete the oldest commit, one step each
    checkpoint read → put
    vacuum     read → put the mark → read again → delete one file each
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

Commit = tuple[str, frozenset[str], frozenset[str], int]
"""Who wrote it, the files it adds, those it removes, and the lowest read version it asks for."""


@dataclass(frozen=True)
class Rules:
    """The rules under test; a test switches one off and sees what is lost."""

    looks_at_parent: bool = True
    """After its put a writer sees that the version before is there, or that a checkpoint has its own."""
    judged_by_start: bool = True
    """A writer that began below the mark is refused, however often it has planned again."""
    stale_is_refused: bool = True
    """A plan whose winners cannot be read is not committed."""
    marks_first: bool = True
    """A vacuum commits its mark before it deletes."""


@dataclass(frozen=True)
class State:
    """What is in the store, and where everybody is."""

    commits: tuple[tuple[int, Commit], ...]
    checkpoints: frozenset[int]
    files: frozenset[str]
    actors: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Name, the step it is at, and the numbers it remembers."""
    history: tuple[Commit, ...]
    """Every version there has been, by number: the truth."""
    acknowledged: frozenset[tuple[str, int]] = frozenset()


def start(*actors: str) -> State:
    """Version 0 with one file, version 1 that replaces it."""
    first: Commit = ("setup", frozenset({"a"}), frozenset(), 0)
    second: Commit = ("setup", frozenset({"b"}), frozenset({"a"}), 0)
    waiting = tuple((name, "start", ()) for name in actors)
    return State(
        ((0, first), (1, second)), frozenset({0}), frozenset({"a", "b"}), waiting, (first, second)
    )


def late(*actors: str) -> State:
    """The same four versions later, with a first writer that planned on version 1 and has written its file."""
    begun = start(*actors)
    later = [("setup", frozenset({new}), frozenset({old}), 0) for old, new in ("bc", "cd", "de")]
    history = (*begun.history, *later)
    return replace(
        begun,
        commits=tuple(enumerate(history)),
        checkpoints=frozenset({0, 3, 4}),
        files=frozenset({*"abcde", actors[0]}),
        actors=((actors[0], "put", (1, 1, 2)), *begun.actors[1:]),
        history=history,
    )


def live(history: tuple[Commit, ...], version: int) -> frozenset[str]:
    """The files of a version."""
    found: frozenset[str] = frozenset()
    for _, adds, removes, _ in history[: version + 1]:
        found = (found - removes) | adds
    return found


def mark(history: tuple[Commit, ...], version: int) -> int:
    """The lowest version a writer may have begun with."""
    return max((lowest for _, _, _, lowest in history[: version + 1]), default=0)


def newest(state: State) -> int:
    """The version a reader finds."""
    return max([*(v for v, _ in state.commits), *state.checkpoints])


def readable(state: State, version: int) -> bool:
    """Whether this version can be put together: a checkpoint, and every commit after it."""
    there = {v for v, _ in state.commits}
    return any(
        base <= version and all(v in there for v in range(base + 1, version + 1))
        for base in state.checkpoints
    )


def successors(state: State, rules: Rules) -> Iterator[State]:
    """Every state one step away."""
    for number, (name, step, memory) in enumerate(state.actors):
        kind = name.rstrip("0123456789")
        for changed, at, remembered in _STEPS[kind](state, rules, name, step, memory):
            actors = list(changed.actors)
            actors[number] = (name, at, remembered)
            yield replace(changed, actors=tuple(actors))


Step = tuple[State, str, tuple[int, ...]]


def _put(state: State, version: int, commit: Commit) -> State | None:
    """The store after an exclusive put; None if the name is taken. The truth grows only at its end."""
    if any(v == version for v, _ in state.commits):
        return None
    history = state.history
    if version == len(history):
        history = (*history, commit)
    return replace(state, commits=tuple(sorted((*state.commits, (version, commit)))), history=history)


def _writer(
    state: State, rules: Rules, name: str, step: str, memory: tuple[int, ...]
) -> Iterator[Step]:
    """It replaces the newest file by one of its own, once; `memory`: began with, planned on, tries left."""
    match step:
        case "start":
            version = newest(state)
            if readable(state, version):
                yield replace(state, files=state.files | {name}), "put", (version, version, 2)
        case "put":
            began, base, tries = memory
            judged = began if rules.judged_by_start else base
            if judged < mark(state.history, base):
                yield state, "refused", ()
                return
            removes = live(state.history, base) - {name}
            after = _put(state, base + 1, (name, frozenset({name}), removes, 0))
            if after is not None:
                yield after, "look", memory
            elif tries:
                yield state, "lost", (began, base, tries - 1)
            else:
                yield state, "refused", ()
        case "lost":
            began, base, tries = memory
            there = {v for v, _ in state.commits}
            now = newest(state)
            seen = all(v in there for v in range(base + 1, now + 1))
            if seen or rules.stale_is_refused:
                yield state, "put", (began, now, tries)  # planned again on what is there
            else:
                yield state, "stale", (began, base, now)
        case "stale":
            began, base, now = memory
            removes = live(state.history, base) - {name}
            after = _put(state, now + 1, (name, frozenset({name}), removes, 0))
            yield (state, "refused", ()) if after is None else (after, "look", (began, now, 0))
        case "look":
            _, base, _ = memory
            is_there = any(v == base for v, _ in state.commits) or base in state.checkpoints
            followed = base + 1 in state.checkpoints
            if is_there or followed or not rules.looks_at_parent:
                done = state.acknowledged | {(name, base + 1)}
                yield replace(state, acknowledged=done), "done", ()
            else:
                kept = tuple(c for c in state.commits if not (c[0] == base + 1 and c[1][0] == name))
                yield replace(state, commits=kept), "refused", ()


def _checkpoint(
    state: State, _: Rules, name: str, step: str, memory: tuple[int, ...]
) -> Iterator[Step]:
    match step:
        case "start":
            version = newest(state)
            if readable(state, version):
                yield state, "put", (version,)
        case "put":
            yield replace(state, checkpoints=state.checkpoints | {memory[0]}), "done", ()


def _cleanup(state: State, _: Rules, name: str, step: str, memory: tuple[int, ...]) -> Iterator[Step]:
    """Deletes every commit below the second newest checkpoint, oldest first."""
    if step == "start":
        if len(state.checkpoints) > 1:
            yield state, "delete", (sorted(state.checkpoints)[-2],)
    elif step == "delete":
        below = [v for v, _ in state.commits if v < memory[0]]
        older = [v for v in state.checkpoints if v < memory[0]]
        if below and (not older or below[0] <= min(older)):
            kept = tuple(c for c in state.commits if c[0] != below[0])
            yield replace(state, commits=kept), "delete", memory
        elif older:
            yield replace(state, checkpoints=state.checkpoints - {min(older)}), "delete", memory
        else:
            yield state, "done", ()


def _vacuum(
    state: State, rules: Rules, name: str, step: str, memory: tuple[int, ...]
) -> Iterator[Step]:
    """With no retention: everything goes that the version it saw does not have."""
    match step:
        case "start":
            version = newest(state)
            if readable(state, version):
                yield state, ("mark" if rules.marks_first else "plan"), (version, version)
        case "mark":
            lowest, base = memory
            after = _put(state, base + 1, (name, frozenset(), frozenset(), lowest))
            if after is not None:
                yield after, "plan", memory
            else:
                yield state, "mark", (lowest, newest(state))
        case "plan":
            now = newest(state)
            if readable(state, now):
                yield state, "delete", (memory[0], now)
        case "delete":
            lowest, now = memory
            kept = frozenset().union(*(live(state.history, v) for v in range(lowest, now + 1)))
            began = {actor: numbers[0] for actor, _, numbers in state.actors if numbers}
            known = frozenset("abcde").union(
                *(adds for _, adds, _, _ in state.history[: now + 1]),
                # files are named for the version their writer had read
                {f for f in state.files if began.get(f, lowest) < lowest},
            )
            doomed = sorted((state.files & known) - kept)
            if doomed:
                yield replace(state, files=state.files - {doomed[0]}), "delete", memory
            else:
                yield state, "done", ()


_STEPS: dict[str, Callable[[State, Rules, str, str, tuple[int, ...]], Iterator[Step]]] = {
    "w": _writer,
    "c": _checkpoint,
    "k": _cleanup,
    "v": _vacuum,
}


def wrong(state: State, rules: Rules) -> str | None:
    """What is broken in this state, if anything."""
    version = newest(state)
    if not any(step == "look" for _, step, _ in state.actors):
        if not readable(state, version):
            return f"version {version} cannot be put together"
        if version != len(state.history) - 1:
            return f"version {version} is the newest, not {len(state.history) - 1}"
    if lost := live(state.history, len(state.history) - 1) - state.files:
        return f"{sorted(lost)} is in the newest version and not in the store"
    for name, at in sorted(state.acknowledged):
        if at >= len(state.history) or state.history[at][0] != name:
            return f"{name} was told that it is version {at}"
    owners = [commit[0] for commit in state.history if commit[0].startswith("w")]
    if len(owners) != len(set(owners)):
        return "a writer is in the history twice"
    return _rows_back(state)


def _rows_back(state: State) -> str | None:
    """Every commit of a writer replaces all that was there: two files live at once are rows that came back."""
    for version in range(len(state.history)):
        if len(live(state.history, version)) > 1:
            return f"version {version} has {sorted(live(state.history, version))}: what was replaced is back"
    return None


def search(rules: Rules, first: State) -> tuple[int, str | None, list[State]]:
    """Visits every state: how many there are, and the first that is wrong with the way to it."""
    seen: dict[State, State | None] = {first: None}
    waiting = [first]
    for state in waiting:
        if (what := wrong(state, rules)) is not None:
            way: list[State] = []
            at: State | None = state
            while at is not None:
                way.append(at)
                at = seen[at]
            return len(seen), what, way[::-1]
        for after in successors(state, rules):
            if after not in seen:
                seen[after] = state
                waiting.append(after)
    return len(seen), None, []
