"""Opening: what is damaged is worked around or named, never misread."""

import logging
import threading
import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import (
    IndexTablesError,
    LogCorruptedError,
    NotATableError,
    ProtocolError,
    ReadOnlyStoreError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.log.wire.actions import Protocol
from indextables.log.wire.files import LogNames
from indextables.log.transaction_log import TransactionLog
from indextables.ops.check.log import check_log
from support.faults import FaultyStore
from support.logs import (
    METADATA,
    add_of,
    appending,
    copy_of,
    foreign_add,
    foreign_metadata,
    fresh_store,
    new_log,
    numbers,
    text_of,
    write_foreign,
)

NAMES = LogNames()
HINT = NAMES.hint


@pytest.fixture(scope="module")
def sound():
    """Versions 0-25 with checkpoints at 10 and 20; version n has splits 0…n."""
    log = new_log(None, add_of(0))
    for i in range(1, 26):
        log.commit(lambda s, i=i: appending(add_of(i)))
        if i in (10, 20):
            log.checkpoint()
    return log.store


@pytest.fixture
def store(sound):
    return copy_of(sound)


def opened(store, **where):
    return TransactionLog(store).snapshot(**where)


# -- what may be gone or garbled without harm --------------------------------------------------------


def truncate(store, key):
    store.put(key, store.get(key)[:-40])


def garble(store, key):
    store.put(key, b"\x00garbage\xff\n{")


def cut_at_line(store, key):
    store.put(key, b"".join(store.get(key).splitlines(keepends=True)[:-1]))


def empty(store, key):
    store.put(key, b"")


def drop(store, key):
    store.delete(key)


HARMLESS = [
    ("no hint", lambda s: s.delete(HINT)),
    ("a garbled hint", lambda s: s.put(HINT, b"{")),
    ("an empty hint", lambda s: s.put(HINT, b"")),
    ("a hint that is a list", lambda s: s.put(HINT, b"[]")),
    ("a hint without a version", lambda s: s.put(HINT, b"{}")),
    ("a hint with a version that is a text", lambda s: s.put(HINT, b'{"version":"20"}')),
    ("a hint with a negative version", lambda s: s.put(HINT, b'{"version":-1}')),
    ("a hint that points ahead", lambda s: s.put(HINT, b'{"version":23}')),
    ("a hint with a version of a million digits", lambda s: s.put(HINT, b'{"version":1e999999}')),
    ("an old hint", lambda s: s.put(HINT, b'{"version":10}')),
    ("a truncated newest checkpoint", lambda s: truncate(s, NAMES.checkpoint(20))),
    ("a garbled newest checkpoint", lambda s: garble(s, NAMES.checkpoint(20))),
    ("a newest checkpoint cut between two lines", lambda s: cut_at_line(s, NAMES.checkpoint(20))),
    ("an empty newest checkpoint", lambda s: empty(s, NAMES.checkpoint(20))),
    ("no newest checkpoint", lambda s: drop(s, NAMES.checkpoint(20))),
    ("both checkpoints torn", lambda s: (truncate(s, NAMES.checkpoint(20)), empty(s, NAMES.checkpoint(10)))),
    ("no commits before the checkpoint", lambda s: [drop(s, NAMES.commit(v)) for v in range(20)]),
    ("no commits up to the checkpoint", lambda s: [drop(s, NAMES.commit(v)) for v in range(21)]),
    ("a garbled commit before the checkpoint", lambda s: garble(s, NAMES.commit(5))),
    ("files that are not the log's", lambda s: [s.put(f"_transaction_log/{n}", b"x") for n in (
        ".000000000000000026.json.crc", "000000000000000026.json.tmp", "26.json", "000000000000000026.checkpoint.json.gz",
        "sub/000000000000000026.json", "0000000000000000026.json")]),
]  # fmt: skip


@pytest.mark.parametrize("damage", [case[1] for case in HARMLESS], ids=[case[0] for case in HARMLESS])
def test_the_table_opens_as_if_nothing_had_happened(store, damage):
    """The hint is a hint, and a checkpoint only saves time."""
    damage(store)
    snapshot = opened(store)
    assert snapshot.version == 25
    assert numbers(snapshot) == list(range(26))


def test_a_torn_checkpoint_is_mentioned_in_the_log(store, caplog):
    """Silence would let it stay torn until the older one goes."""
    truncate(store, NAMES.checkpoint(20))
    with caplog.at_level(logging.WARNING, "indextables"):
        opened(store)
    assert "000000000000000020.checkpoint.json is not usable" in caplog.text


@pytest.mark.parametrize("at", [11, 20, 21, 24])
def test_a_commit_that_the_listing_hides_is_fetched_by_name(store, at):
    """Some stores list late."""

    class Forgetful(FaultyStore):
        def list(self, prefix, *, start_after=None):
            hidden = NAMES.commit(at)
            return (m for m in super().list(prefix, start_after=start_after) if m.key != hidden)

    forgetful = Forgetful(store)
    store.delete(HINT)
    store.delete(NAMES.checkpoint(20))
    assert numbers(opened(forgetful)) == list(range(26))


# -- what cannot be worked around is named ------------------------------------------------------------

FATAL = [
    ("a hole after the checkpoint", lambda s: drop(s, NAMES.commit(23)), "000000000000000023.json is missing", 0),
    ("a truncated newest commit", lambda s: truncate(s, NAMES.commit(25)), "000000000000000025.json", None),
    ("a newest commit cut between two lines", lambda s: cut_at_line(s, NAMES.commit(25)), "000000000000000025.json, line 2: the file is cut off", 2),
    ("an empty commit", lambda s: empty(s, NAMES.commit(25)), "the file is empty", 1),
    ("a garbled commit in the middle", lambda s: garble(s, NAMES.commit(22)), "000000000000000022.json, line 1", 1),
    ("a line put in", lambda s: s.put(NAMES.commit(22), b'{"txn":{"appId":"a","version":1}}\n' + s.get(NAMES.commit(22))), "checksum", 3),
    ("a line put after the end", lambda s: s.put(NAMES.commit(22), s.get(NAMES.commit(22)) + b'{"txn":{"appId":"a","version":1}}\n'), "lines after the one that ends a commit", 2),
    ("no way back to version 0", lambda s: (garble(s, NAMES.checkpoint(20)), garble(s, NAMES.checkpoint(10)), drop(s, NAMES.commit(0))), "000000000000000000.json is missing", 0),
    ("a commit of another table in place", lambda s: s.put(NAMES.commit(24), new_commit()), "follows commit", 1),
    ("a commit from far in the future", lambda s: s.put(NAMES.commit(10**17), s.get(NAMES.commit(25))), "000000000000000026.json is missing", 0),
    ("a checkpoint ahead of all commits", lambda s: s.put(NAMES.checkpoint(30), s.get(NAMES.checkpoint(20))), "000000000000000026.json is missing|intact, but its commit", 0),
]  # fmt: skip


def new_commit():
    log = new_log(None, add_of(0))
    log.commit(lambda s: appending(add_of(99)))
    return log.store.get(NAMES.commit(1))


@pytest.mark.parametrize(
    ("damage", "says", "line"), [case[1:] for case in FATAL], ids=[case[0] for case in FATAL]
)
def test_damage_that_may_have_cost_a_commit_is_an_error_naming_the_file(store, damage, says, line):
    """Never an older version in silence."""
    damage(store)
    with pytest.raises(LogCorruptedError, match=says) as caught:
        opened(store)
    assert caught.value.file.endswith(".json")
    assert line is None or caught.value.line == line


def test_the_versions_before_the_damage_can_still_be_read(store):
    """Time travel needs no more than it reads."""
    garble(store, NAMES.commit(25))
    assert numbers(opened(store, version=24)) == list(range(25))


def test_a_checkpoint_of_another_log_is_not_used(store, caplog):
    """Its commit id is not the one of the version it claims."""
    other = new_log(None, add_of(70))
    for i in range(71, 91):
        other.commit(lambda s, i=i: appending(add_of(i)))
    other.checkpoint()
    store.put(NAMES.checkpoint(20), other.store.get(NAMES.checkpoint(20)))
    assert numbers(opened(store)) == list(range(26))
    assert numbers(opened(store, version=20)) == list(range(21))
    assert "belongs to another log" in caplog.text


def test_a_commit_whose_parent_has_lost_its_id_is_refused():
    """The version before was ours; what is there now is not."""
    log = new_log(None, add_of(0))
    log.commit(lambda s: appending(add_of(1)))
    log.commit(lambda s: appending(add_of(2)))
    forged = b"".join(log.store.get(NAMES.commit(0)).splitlines(keepends=True)[:-1])
    log.store.put(NAMES.commit(0), forged.replace(b'"commitTrailer"', b""))
    with pytest.raises(LogCorruptedError, match="follows commit"):
        opened(log.store)


def test_a_log_that_is_exchanged_between_listing_and_reading_is_not_mixed_with_the_new_one(store):
    """The reader sees the old table or the new one."""
    other = new_log(None, add_of(40))
    for i in range(41, 66):
        other.commit(lambda s, i=i: appending(add_of(i)))

    class Swapping(FaultyStore):
        swapped = False

        def list(self, prefix, *, start_after=None):
            found = list(super().list(prefix, start_after=start_after))
            if not self.swapped:
                self.swapped = True
                for meta in [*self.inner.list("")]:
                    self.inner.delete(meta.key)
                for meta in other.store.list(""):
                    self.inner.put(meta.key, other.store.get(meta.key))
            return iter(found)

    assert numbers(opened(Swapping(store))) == list(range(40, 66))


def test_a_failing_store_is_not_a_missing_file(store):
    """Only NotFound means missing: anything else must not lead to another snapshot."""
    calls = FaultyStore(store)
    right = opened(calls)
    for n in range(len(calls.calls)):
        try:
            found = opened(FaultyStore(store, fail_at=n))
        except StorageError:
            continue
        assert (found.version, numbers(found)) == (right.version, numbers(right))


class Unreadable:
    """`inner`, in which some objects are listed and cannot be read."""

    def __init__(self, inner, *keys):
        self._inner, self._keys = inner, keys

    def get(self, key):
        if key in self._keys:
            raise StorageError(f"{key!r}: permission denied", key=key)
        return self._inner.get(key)

    def __getattr__(self, name):
        return getattr(self._inner, name)


@pytest.mark.parametrize(
    "keys", [[HINT], [NAMES.checkpoint(20)], [HINT, NAMES.checkpoint(10), NAMES.checkpoint(20)]]
)
def test_an_object_that_cannot_be_read_and_is_not_needed_does_not_stop_opening(store, keys):
    """A link loop in the place of the hint, a checkpoint of another owner: the commits say it all."""
    assert numbers(opened(Unreadable(store, *keys))) == list(range(26))


def test_an_unreadable_checkpoint_that_is_needed_is_that_error(store):
    """Not one about a commit that a cleanup has removed."""
    for version in range(20):
        drop(store, NAMES.commit(version))
    with pytest.raises(StorageError, match="permission denied"):
        opened(Unreadable(store, NAMES.checkpoint(20), NAMES.checkpoint(10)))


def test_a_hint_above_all_versions_means_that_the_end_is_lost(store):
    """It was written after the version it names; opening without the rest would hide rows."""
    assert opened(store).version == 25
    store.put(HINT, b'{"version":30}')
    with pytest.raises(LogCorruptedError, match="goes to version 30, but ends at 25") as caught:
        opened(store)
    assert caught.value.version == 30
    (problem,) = check_log(TransactionLog(store)).problems
    assert (problem.kind, problem.file) == ("missing-commit", NAMES.commit(30).rpartition("/")[2])


def test_a_version_in_digits_of_another_script_is_no_version(store):
    """To Python they are digits, too."""
    store.put(NAMES.commit(25).replace("25", "٢٥"), b"not a commit")
    store.put(NAMES.commit(26).replace("26", "٢٦"), b"not a commit")
    assert opened(store).version == 25


@settings(max_examples=120)
@given(st.data())
def test_a_damaged_log_is_read_right_or_not_at_all(sound, data):
    """Whatever bytes are flipped, cut, doubled or exchanged, in whichever file."""
    store = copy_of(sound)
    keys = sorted(meta.key for meta in store.list("_transaction_log/"))
    key = data.draw(st.sampled_from(keys))
    text = bytearray(store.get(key))
    match data.draw(st.sampled_from(["flip", "cut", "insert", "double a line", "exchange"])):
        case "flip":
            text[data.draw(st.integers(0, len(text) - 1))] ^= data.draw(st.integers(1, 255))
        case "cut":
            del text[data.draw(st.integers(0, len(text) - 1)) :]
        case "insert":
            at = data.draw(st.integers(0, len(text)))
            text[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        case "double a line":
            lines = bytes(text).splitlines(keepends=True)
            text += data.draw(st.sampled_from(lines))
        case "exchange":
            text = bytearray(store.get(data.draw(st.sampled_from(keys))))
    store.put(key, bytes(text))
    for version in (None, data.draw(st.integers(0, 25))):
        try:
            snapshot = opened(store, version=version)
        except IndexTablesError:
            continue
        assert numbers(snapshot) == list(range((25 if version is None else version) + 1))


# -- other writers' logs -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [18, 20])
@pytest.mark.parametrize("packed", ["plain", "gzip", "prefixed"])
def test_logs_of_other_writers_are_read(width, packed):
    """In 18 and 20 digits, plain and compressed."""
    store = fresh_store()
    commits = {0: [{"protocol": {"minReaderVersion": 2}}, foreign_metadata()]}
    commits |= {v: [foreign_add(v), {"commitInfo": {"timestamp": v * 10}}] for v in range(1, 12)}
    write_foreign(store, commits, width=width, packed=packed)
    snapshot = opened(store)
    assert (snapshot.version, numbers(snapshot)) == (11, list(range(1, 12)))
    assert snapshot.timestamp_ms == 110
    assert [entry.verified for entry in TransactionLog(store).history()] == [False] * 12


def test_a_log_in_20_digits_is_continued_in_20_digits():
    """With its checkpoints and its hint."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], 1: [foreign_add(1)]}, width=20)
    log = TransactionLog(store)
    for i in range(2, 13):
        log.commit(lambda s, i=i: appending(add_of(i)))
    names = {meta.key for meta in store.list("_transaction_log/")}
    assert NAMES.commit(12, 20) in names
    assert NAMES.checkpoint(10, 20) in names
    assert not any(NAMES.commit(v) in names for v in range(13))
    assert numbers(opened(store)) == list(range(1, 13))


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(("first", "then"), [(18, 20), (20, 18)])
def test_a_log_in_two_widths_is_readable_and_not_writable(first, then, checkpoint):
    """Two spellings of one version would let two writers both win it."""
    store = fresh_store()
    write_foreign(
        store, {0: [foreign_metadata()], **{v: [foreign_add(v)] for v in range(1, 11)}}, width=first
    )
    if checkpoint:
        TransactionLog(store).checkpoint()
    handle = TransactionLog(store)
    assert handle.snapshot().version == 10
    write_foreign(store, {11: [foreign_add(11)]}, width=then)
    for log in (handle, TransactionLog(store)):
        assert numbers(log.snapshot()) == list(range(1, 12))
        with pytest.raises(ReadOnlyStoreError, match="18 and 20 digits"):
            log.commit(lambda s: appending(add_of(12)))


def test_one_version_in_two_widths_is_read_if_both_say_the_same_and_refused_if_not():
    """A copy is harmless; which of two commits is true, nobody can say."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], 1: [foreign_add(1)]})
    write_foreign(store, {1: [foreign_add(1)]}, width=20)
    assert numbers(opened(store)) == [1]
    write_foreign(store, {1: [foreign_add(2)]}, width=20)
    with pytest.raises(LogCorruptedError, match="version 1 exists twice"):
        opened(store)


@pytest.mark.parametrize("twin", [20, 21, 23, 25])
def test_a_version_that_differs_in_another_width_is_refused_with_a_hint_as_without(store, twin):
    """20 digits sort before 18, so a listing from the hinted checkpoint on does not show it."""
    handle = TransactionLog(copy_of(store))
    store.put(NAMES.commit(twin, 20), store.get(NAMES.commit(twin)))
    assert numbers(opened(store)) == list(range(26)), "a copy is harmless"
    store.put(NAMES.commit(twin, 20), text_of([foreign_add(99)]))
    for hinted in (True, False):
        if not hinted:
            store.delete(HINT)
        with pytest.raises(LogCorruptedError, match=f"version {twin} exists twice"):
            opened(store)
    assert numbers(handle.snapshot()) == list(range(26))


def test_a_handle_notices_that_a_new_version_differs_in_another_width(store):
    """It lists from what it knows, and that listing does not show the other width either."""
    handle = TransactionLog(store)
    handle.snapshot()
    TransactionLog(store).commit(lambda s: appending(add_of(26)))
    store.put(NAMES.commit(26, 20), text_of([foreign_add(99)]))
    with pytest.raises(LogCorruptedError, match="version 26 exists twice"):
        handle.snapshot()


def test_looking_for_another_width_lists_no_more_than_the_versions_after_the_checkpoint(sound):
    """A log of many versions opens by what is new, not by what is old."""
    store = FaultyStore(copy_of(sound))
    assert opened(store).version == 25
    shown = [key for call, key in store.calls if call in {"list", "head"}]
    assert len(shown) == 2


def test_a_log_in_20_digits_whose_beginning_is_cleaned_up_opens_without_a_warning(caplog):
    """Its hint names a checkpoint that is there, in 20 digits."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], 1: [foreign_add(1)]}, width=20)
    log = TransactionLog(store)
    for i in range(2, 13):
        log.commit(lambda s, i=i: appending(add_of(i)))
    for version in range(10):
        store.delete(NAMES.commit(version, 20))
    assert numbers(opened(store)) == list(range(1, 13))
    assert not caplog.records


def test_a_foreign_commit_without_a_newline_at_the_end_or_with_windows_line_ends_is_read():
    """Both occur."""
    store = fresh_store()
    store.put(NAMES.commit(0), text_of([foreign_metadata(), foreign_add(1)], newline_at_end=False))
    store.put(NAMES.commit(1), text_of([foreign_add(2), foreign_add(3)]).replace(b"\n", b"\r\n"))
    assert numbers(opened(store)) == [1, 2, 3]


def test_a_commit_with_very_many_applications_opens_in_time_that_follows_their_number():
    """Each has its own transaction, and adding one copies none of the others."""
    store = fresh_store()
    txns = [{"txn": {"appId": f"app-{i}", "version": i}} for i in range(40_000)]
    write_foreign(store, {0: [foreign_metadata(), *txns]})
    started = time.process_time()
    snapshot = opened(store)
    assert time.process_time() - started < 8
    assert len(snapshot.txns) == 40_000
    assert snapshot.txns["app-7"].version == 7


def test_a_foreign_log_without_any_protocol_is_read():
    """The first writers of this format had none."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata(), foreign_add(1)]})
    assert opened(store).protocol == Protocol(1, 1, writer_features=())


# -- gates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        ({"minReaderVersion": 3}, "protocol version 3"),
        ({"minReaderVersion": 1, "readerFeatures": ["deletionVectors"]}, "'deletionVectors'"),
    ],
)
def test_a_protocol_that_is_too_new_is_a_clear_error(protocol, says):
    """Before anything is misread."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata(), {"protocol": protocol}, foreign_add(1)]})
    with pytest.raises(ProtocolError, match=says) as caught:
        opened(store)
    assert "upgrade" in str(caught.value)


@pytest.mark.parametrize("protocol", [{"minWriterVersion": 3}, {"writerFeatures": ["rowTracking"]}])
def test_a_protocol_too_new_for_writers_can_still_be_read(protocol):
    """Reading is safe, writing is not."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata(), {"protocol": protocol}, foreign_add(1)]})
    log = TransactionLog(store)
    assert numbers(log.snapshot()) == [1]
    with pytest.raises(ProtocolError, match="cannot be written"):
        log.commit(lambda s: appending(add_of(2)))
    assert log.snapshot().version == 0


def test_nothing_there_and_something_else_there_are_two_errors():
    """One is a typo, the other a directory of somebody's files."""
    store = fresh_store()
    with pytest.raises(TableNotFoundError):
        opened(store)
    store.put("part-0.parquet", b"PAR1")
    with pytest.raises(NotATableError, match="convert"):
        opened(store)


def test_a_log_without_metadata_is_refused():
    """Without a schema no statistic has a meaning."""
    store = fresh_store()
    write_foreign(store, {0: [{"protocol": {"minReaderVersion": 1}}]})
    with pytest.raises(LogCorruptedError, match="no metaData"):
        opened(store)
    write_foreign(store, {0: [foreign_add(1)]})
    with pytest.raises(LogCorruptedError, match="an add before any metaData"):
        opened(store)


def test_a_commit_whose_count_of_files_does_not_fit_is_refused():
    """The writer counted; a reader that gets another number has misread something."""
    log = new_log(None, add_of(1))
    log.commit(lambda s: appending(add_of(2)))
    text = log.store.get(NAMES.commit(1)).replace(b'"numFiles":2', b'"numFiles":3')
    log.store.put(NAMES.commit(1), text)
    with pytest.raises(LogCorruptedError, match="counted 3 files, but the log has 2"):
        opened(log.store)


# -- time travel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 9, 10, 11, 20, 25])
def test_any_version_in_the_log_can_be_read(store, version):
    """With and without a checkpoint before it."""
    snapshot = opened(store, version=version)
    assert (snapshot.version, numbers(snapshot)) == (version, list(range(version + 1)))


@pytest.mark.parametrize("version", [-1, 26, 10**9])
def test_a_version_outside_the_log_is_an_error(store, version):
    """With the newest version in the message."""
    with pytest.raises(VersionNotFoundError, match="the newest is 25"):
        opened(store, version=version)


def test_a_version_older_than_what_is_kept_is_an_error(store):
    """After a cleanup."""
    for v in range(8):
        store.delete(NAMES.commit(v))
    with pytest.raises(VersionNotFoundError, match="kept from 8 on"):
        opened(store, version=9)
    assert numbers(opened(store, version=10)) == list(range(11))


def test_the_same_handle_notices_that_its_log_was_replaced(store, sound):
    """By a repair: the new log is shorter, and another one."""
    handle = TransactionLog(store)
    assert handle.snapshot().version == 25
    for meta in [*store.list("_transaction_log/")]:
        store.delete(meta.key)
    other = new_log(None, add_of(1))
    for meta in other.store.list(""):
        store.put(meta.key, other.store.get(meta.key))
    assert (handle.snapshot().version, numbers(handle.snapshot())) == (0, [1])


def test_a_handle_reads_only_what_is_new(store):
    """A long history is read once."""
    counting = FaultyStore(store)
    handle = TransactionLog(counting)
    handle.snapshot()
    writer = TransactionLog(store)
    writer.commit(lambda s: appending(add_of(26)))
    counting.calls.clear()
    assert handle.snapshot().version == 26
    assert [key for name, key in counting.calls if name == "get"] == [NAMES.commit(26)]
    counting.calls.clear()
    assert handle.snapshot().version == 26
    assert not [key for name, key in counting.calls if name.startswith("get")]


def test_the_hint_saves_the_listing_of_old_commits(store):
    """Only versions from the checkpoint on are listed and read."""
    counting = FaultyStore(store)
    opened(counting)
    read = [key for name, key in counting.calls if name == "get"]
    assert sorted(read) == sorted(
        [HINT, NAMES.checkpoint(20), *(NAMES.commit(v) for v in range(21, 26))]
    )
    assert orjson.loads(store.get(HINT))["version"] == 20
    assert METADATA.id


@pytest.mark.parametrize("slow", [False, True])
def test_files_are_read_side_by_side_only_where_the_store_is_slow(sound, slow, monkeypatch):
    """A thread costs more than a local file, and much less than a round trip."""
    readers = set()
    monkeypatch.setattr(
        "indextables.log.open.load._SLOW", 0.001 if slow else 60
    )  # a busy machine is no slow store

    class Slow(FaultyStore):
        def get(self, key):
            if not key.endswith("_last_checkpoint"):
                time.sleep(0.01 if slow else 0)
                readers.add(threading.get_ident())
            return super().get(key)

    store = copy_of(sound)
    for key in [HINT, *(NAMES.checkpoint(version) for version in (10, 20))]:
        store.delete(key)
    assert numbers(opened(Slow(store))) == list(range(26))
    assert len(readers) > 4 if slow else readers == {threading.get_ident()}
