"""The local store: durable, exclusive between processes, and never a half-written file in sight."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from indextables.errors import ObjectExistsError, ObjectNotFoundError, ReadOnlyStoreError, StorageError
from indextables.storage import durable, open_store
from indextables.storage.base import temporary_name
from indextables.storage.local import LocalStore

RACER = """
import sys, time
from indextables.errors import ObjectExistsError
from indextables.storage import open_store
store, name, rounds = open_store(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
start = float(input())
for number in range(rounds):
    time.sleep(max(0, start + number * 0.02 - time.time()))  # all of them at once, for every key
    try:
        store.put_if_absent(f"log/{number:03}", name.encode() * 200_000)
        print(number)
    except ObjectExistsError:
        pass
"""

WRITER = """
import sys
from indextables.storage import open_store
store = open_store(sys.argv[1])
number = 0
print("ready", flush=True)
while True:
    store.put_if_absent(f"log/{number:06}", b"%06d" % number * 500_000)
    print(number, flush=True)
    store.put("pointer", b"%06d" % number * 500_000)
    number += 1
"""


def run(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Starts a process and waits until it says that it is ready."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "t")


def test_of_eight_processes_exactly_one_wins_each_key(tmp_path):
    """Sixty keys, eight processes at once: each key has one winner, whose bytes are there."""
    racers = {name: run(RACER, tmp_path, name, 60) for name in "abcdefgh"}
    start = time.time() + 0.1
    for racer in racers.values():
        print(start, file=racer.stdin, flush=True)
    won = {
        name: [int(number) for number in racer.communicate(timeout=60)[0].split()]
        for name, racer in racers.items()
    }
    assert sorted(number for numbers in won.values() for number in numbers) == list(range(60))
    store = open_store(tmp_path)
    for name, numbers in won.items():
        assert all(store.get(f"log/{number:03}") == name.encode() * 200_000 for number in numbers)


def test_a_killed_writer_leaves_only_whole_objects(tmp_path):
    """SIGKILL at twelve different moments: what is listed is whole, and its versions have no hole."""
    written = 0
    for attempt in range(12):
        root = tmp_path / str(attempt)
        writer = run(WRITER, root)
        if attempt % 2:
            writer.stdout.readline()  # it has written one, however slow the machine is
        time.sleep(0.004 * attempt)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        store = open_store(root)
        metas = list(store.list(""))
        versions = [meta.key for meta in metas if meta.key.startswith("log/")]
        assert versions == [f"log/{number:06}" for number in range(len(versions))]
        assert {meta.size for meta in metas} <= {3_000_000}
        for key in versions:
            assert store.get(key) == key[-6:].encode() * 500_000
        written += len(versions)
    assert written


def test_a_failed_write_leaves_nothing(store, monkeypatch):
    """A full disk in the middle of a put: an error, no object, no temporary file."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable, "fsync_descriptor", full)
    for put in (store.put, store.put_if_absent):
        with pytest.raises(StorageError, match="No space left"):
            put("log/0", b"x")
    assert list(store.list("")) == []
    assert list(store.stale_temporaries(modified_before_ms=2**62)) == []


def test_the_bytes_and_the_names_reach_the_disk_in_this_order(store, monkeypatch):
    """File, then its name, then the directory; a new directory's parents up to one that was there before."""
    root, events = Path(store.uri), []

    def log(name, original):
        def call(*arguments):
            events.append((name, *(a.name if isinstance(a, Path) else "" for a in arguments[-1:])))
            return original(*arguments)

        return call

    monkeypatch.setattr(durable, "fsync_descriptor", log("fsync file", durable.fsync_descriptor))
    monkeypatch.setattr(durable, "fsync_directory", log("fsync directory", durable.fsync_directory))
    monkeypatch.setattr(os, "link", log("link", os.link))
    store.put_if_absent("a/b/0", b"x")
    assert events == [
        ("fsync directory", "a"),
        ("fsync directory", "t"),
        ("fsync directory", root.parent.name),
        ("fsync file", ""),
        ("link", "0"),
        ("fsync directory", "b"),
    ]
    events.clear()
    store.put_if_absent("a/b/1", b"x")
    assert [event[0] for event in events] == ["fsync file", "link", "fsync directory"]


def test_every_new_directory_above_the_root_is_synced_too(tmp_path, monkeypatch):
    """A table in a directory that does not exist yet does not vanish with it."""
    synced, original = set(), durable.fsync_directory
    monkeypatch.setattr(durable, "fsync_directory", lambda path: (synced.add(path), original(path)))
    open_store(tmp_path / "x" / "y" / "table").put("k", b"1")
    assert {tmp_path, tmp_path / "x", tmp_path / "x" / "y", tmp_path / "x" / "y" / "table"} <= synced


def test_sync_files_covers_files_and_every_directory_up_to_the_root(store, monkeypatch):
    """What Arrow wrote without fsync is on the disk before a commit names it."""
    filesystem = store.filesystem()
    for key in ("data/0-ab/day=1/x", "data/0-ab/day=2/y"):
        filesystem.create_dir(key.rpartition("/")[0])
        with filesystem.open_output_stream(key) as stream:
            stream.write(b"bytes")
    files, directories = [], []
    original_file, original_directory = durable.fsync_file, durable.fsync_directory
    monkeypatch.setattr(durable, "fsync_file", lambda path: (files.append(path), original_file(path)))
    monkeypatch.setattr(
        durable, "fsync_directory", lambda path: (directories.append(path), original_directory(path))
    )
    store.sync_files(["data/0-ab/day=1/x", "data/0-ab/day=2/y"])
    root = Path(store.uri)
    assert {str(path.relative_to(root)) for path in files} == {"data/0-ab/day=1/x", "data/0-ab/day=2/y"}
    assert {
        root,
        root / "data",
        root / "data/0-ab",
        root / "data/0-ab/day=1",
        root / "data/0-ab/day=2",
    } <= set(directories)
    with pytest.raises(ObjectNotFoundError):
        store.sync_files(["data/gone"])


def test_syncing_nothing_makes_nothing(store):
    """A commit without data files does not create the table's directory."""
    store.sync_files([])
    assert not Path(store.uri).exists()


def test_without_hard_links_an_exclusive_rename_decides(store, monkeypatch):
    """FAT and some network file systems: the kernel's rename that refuses to replace."""
    monkeypatch.setattr(os, "link", _refusing_link)
    store.put_if_absent("log/0", b"first")
    monkeypatch.setattr(
        os.path, "lexists", lambda path: False
    )  # so that the rename itself has to refuse
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("log/0", b"second")
    assert store.get("log/0") == b"first"
    assert list(store.stale_temporaries(modified_before_ms=2**62)) == []


@pytest.mark.parametrize(
    "rename", [None, lambda source, target: errno.EINVAL], ids=["absent", "refused"]
)
def test_without_any_exclusive_call_the_store_is_read_only(store, monkeypatch, rename):
    """Never a way that two writers could both win: an error with a hint, and nothing written."""
    store.put("x", b"1")
    monkeypatch.setattr(os, "link", _refusing_link)
    monkeypatch.setattr(durable, "_renameat2", lambda: rename)
    with pytest.raises(ReadOnlyStoreError, match="hard links") as caught:
        store.put_if_absent("log/0", b"1")
    assert "object store" in caught.value.hint
    assert [meta.key for meta in store.list("")] == ["x"]


def test_a_link_that_succeeded_but_says_it_exists_is_a_success(store, monkeypatch):
    """NFS repeats a request whose answer got lost; the second link of our own file tells."""
    original = os.link

    def repeated(source, target):
        original(source, target)
        original(source, target)

    monkeypatch.setattr(os, "link", repeated)
    store.put_if_absent("log/0", b"mine")
    assert store.get("log/0") == b"mine"


def test_other_errors_of_a_link_are_errors(store, monkeypatch):
    """A read-only or broken disk is not taken for a file system without links."""

    def broken(source, target):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", broken)
    with pytest.raises(StorageError, match="Input/output error") as caught:
        store.put_if_absent("log/0", b"x")
    assert not isinstance(caught.value, ObjectExistsError | ReadOnlyStoreError)


def test_files_have_the_permissions_of_the_umask(store):
    """Other users of a shared table can read what this one wrote."""
    before = os.umask(0o027)
    try:
        store.put("a", b"1")
        store.put_if_absent("b", b"1")
    finally:
        os.umask(before)
    assert {(Path(store.uri) / key).stat().st_mode & 0o777 for key in ("a", "b")} == {0o640}


def test_temporaries_of_a_dead_writer_are_hidden_and_can_be_found(store):
    """Listings do not show them; the old ones are found for vacuum, the young may be alive."""
    store.put("data/x", b"1")
    old, young = Path(store.uri) / "data" / temporary_name(), Path(store.uri) / temporary_name()
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    assert [meta.key for meta in store.list("")] == ["data/x"]
    found = list(store.stale_temporaries(modified_before_ms=2_000_000))
    assert [meta.key for meta in found] == [f"data/{old.name}"]
    store.delete(found[0].key)
    assert not old.exists()
    assert young.exists()


def test_what_no_key_can_name_is_not_listed(store):
    """Bytes that are not UTF-8, control characters, pipes and links to nowhere do not stop a listing."""
    store.put("data/x", b"1")
    root = os.fsencode(store.uri)
    os.mkdir(root + b"/bad\xff")
    for name in (b"/data/\xff\xfe", b"/bad\xff/x", b"/data/new\nline", b"/data/back\\slash"):
        Path(os.fsdecode(root + name)).write_bytes(b"?")
    os.mkfifo(root + b"/data/pipe")
    os.symlink("/no/such/file", root + b"/data/dangling")
    assert [meta.key for meta in store.list("")] == ["data/x"]
    for key in ("data/pipe", "data/dangling"):
        with pytest.raises(ObjectNotFoundError):
            store.get(key)
        with pytest.raises(ObjectNotFoundError):
            store.head(key)


def test_links_are_followed_but_never_in_circles(store, tmp_path):
    """A partition on another disk is part of the table; a link back to the table is not a second one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x").write_bytes(b"far away")
    store.put("data/y", b"near")
    root = Path(store.uri)
    (root / "data" / "linked").symlink_to(elsewhere)
    (root / "data" / "loop").symlink_to(root)
    (root / "data" / "file").symlink_to(elsewhere / "x")
    assert [(meta.key, meta.size) for meta in store.list("")] == [
        ("data/file", 8),
        ("data/linked/x", 8),
        ("data/y", 4),
    ]
    assert store.get("data/linked/x") == b"far away"


def test_deleting_never_reaches_outside_the_table(store, tmp_path):
    """Behind a linked directory: refused. A linked file: the link goes, the file stays."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x").write_bytes(b"precious")
    store.put("data/y", b"near")
    (Path(store.uri) / "data" / "linked").symlink_to(elsewhere)
    (Path(store.uri) / "data" / "file").symlink_to(elsewhere / "x")
    with pytest.raises(StorageError, match="outside the table"):
        store.delete("data/linked/x")
    store.delete("data/file")
    assert (elsewhere / "x").read_bytes() == b"precious"
    assert [meta.key for meta in store.list("data/")] == ["data/linked/x", "data/y"]


def test_a_link_in_the_root_itself_is_the_users_business(tmp_path):
    """A table reached through a link is written and cleaned like any other."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = open_store(tmp_path / "link")
    store.put("x", b"1")
    assert store.uri == str(tmp_path / "link")
    assert open_store(tmp_path / "real").get("x") == b"1"
    store.delete("x")
    assert list(store.list("")) == []


def test_a_file_where_a_directory_belongs_is_an_error_not_a_conflict(store):
    """`put_if_absent` must not report a version as taken when the way to it is blocked."""
    store.put("a", b"1")
    for put in (store.put, store.put_if_absent):
        with pytest.raises(StorageError) as caught:
            put("a/b", b"2")
        assert not isinstance(caught.value, ObjectExistsError | ObjectNotFoundError)
    store.put("dir/x", b"1")
    with pytest.raises(StorageError) as caught:
        store.put("dir", b"2")
    assert not isinstance(caught.value, ObjectNotFoundError)


def test_a_system_error_is_not_taken_for_a_missing_object(store, monkeypatch):
    """'Permission denied' and the like fail the call: REPAIR would otherwise drop the file from the table."""
    store.put("data/x", b"1")

    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    monkeypatch.setattr(Path, "stat", denied)
    for call in (store.get, store.head, lambda key: store.get_range(key, 0, 1)):
        with pytest.raises(StorageError, match="Permission denied") as caught:
            call("data/x")
        assert not isinstance(caught.value, ObjectNotFoundError)
        assert caught.value.errno == errno.EACCES


def test_an_unreadable_directory_fails_the_listing(store, monkeypatch):
    """A listing that silently leaves out a directory would look like lost commits."""
    store.put("data/x", b"1")

    def denied(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(StorageError, match="Permission denied"):
        list(store.list(""))


def test_a_directory_that_vanishes_is_made_again(store):
    """Somebody removed the empty directory between two writes of ours."""
    store.put("a/b/x", b"1")
    store.delete("a/b/x")
    (Path(store.uri) / "a" / "b").rmdir()
    store.put_if_absent("a/b/y", b"2")
    assert store.get("a/b/y") == b"2"


def test_the_root_does_not_move_with_the_working_directory(tmp_path, monkeypatch):
    """A relative path is resolved once, when the store is opened."""
    monkeypatch.chdir(tmp_path)
    store = open_store("rel/table")
    store.put("x", b"1")
    monkeypatch.chdir("/")
    assert store.get("x") == b"1"
    assert store.uri == str(tmp_path / "rel" / "table")


def test_listing_after_a_version_does_not_look_into_earlier_directories(store, monkeypatch):
    """`start_after` skips whole directories, it does not read and drop them."""
    for number in range(20):
        store.put(f"data/{number:02}/x", b"1")
    seen, original = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (seen.append(str(path)), original(path))[1])
    assert [meta.key for meta in store.list("data/", start_after="data/17/x")] == [
        "data/18/x",
        "data/19/x",
    ]
    assert len(seen) <= 4


def _refusing_link(source, target):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux holds directories")
def test_a_directory_that_is_held_is_the_same_one_whatever_gets_its_name(tmp_path):
    """All calls below it go there, also into new directories; all others go by name."""
    store = LocalStore(tmp_path)
    for key in ("log/a", "other/b"):
        store.put(key, key.encode())
    with store.held("log") as here:
        (tmp_path / "log").rename(tmp_path / "left")
        (tmp_path / "other").rename(tmp_path / "log")
        here.put("log/new", b"1")
        here.put_if_absent("log/deep/er/new", b"2")
        here.put("beside/new", b"3")
        assert [meta.key for meta in here.list("log/")] == ["log/a", "log/deep/er/new", "log/new"]
        assert (here.get("log/a"), here.head("log/new").size) == (b"log/a", 1)
        with pytest.raises(ObjectExistsError):
            here.put_if_absent("log/new", b"")
        here.delete("log/a")
        here.delete("log/b")
    assert [meta.key for meta in store.list("")] == [
        "beside/new", "left/deep/er/new", "left/new", "log/b",
    ]  # fmt: skip
