"""A store as Arrow's file system: Parquet goes in and out of every store, with few requests."""

from __future__ import annotations

import gc
import io
import random
import threading
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import FileSelector, FileType
from support.faults import FaultyStore

from indextables.errors import ObjectNotFoundError, StorageError
from indextables.storage import open_store
from indextables.storage.filesystem import ReadAhead

TABLE = pa.table({"id": list(range(50_000)), "text": [f"row {i} of many" for i in range(50_000)]})
PATH = "data/0-ab/day=2024-01-01 00%3A00/é x.parquet"


def write(filesystem, path: str = PATH, table: pa.Table = TABLE) -> None:
    filesystem.create_dir(path.rpartition("/")[0])
    pq.write_table(table, path, filesystem=filesystem, row_group_size=10_000)


def test_parquet_goes_in_and_out(store):
    """Also through directories whose names have spaces, percent signs and umlauts."""
    filesystem = store.filesystem()
    write(filesystem)
    store.sync_files([PATH])
    assert pq.read_table(PATH, filesystem=filesystem).equals(TABLE)
    assert [meta.key for meta in store.list("")] == [PATH]
    assert filesystem.get_file_info(PATH).size == store.head(PATH).size
    found = ds.dataset([PATH], filesystem=filesystem, format="parquet").to_table(
        filter=ds.field("id") == 7
    )
    assert found["text"].to_pylist() == ["row 7 of many"]


def test_a_file_larger_than_one_part_arrives_whole(store):
    """25 MB through the output stream: several parts on an object store."""
    data = random.Random(7).randbytes(25_000_000)
    store.filesystem().create_dir("data")
    with store.filesystem().open_output_stream("data/big") as stream:
        for start in range(0, len(data), 999_999):
            stream.write(data[start : start + 999_999])
    assert store.head("data/big").size == len(data)
    with store.filesystem().open_input_file("data/big") as file:
        assert file.read() == data
        assert file.read_at(10, 24_999_990) == data[-10:]


def test_files_and_directories_are_told_apart(store):
    """What Arrow's dataset discovery asks: info of a path, and of what is below it."""
    filesystem = store.filesystem()
    for key in ("a/b/c", "a/d"):
        store.put(key, b"123")
    infos = {info.path: info for info in filesystem.get_file_info(["a", "a/d", "a/b", "nothing"])}
    assert {path: info.type for path, info in infos.items()} == {
        "a": FileType.Directory,
        "a/d": FileType.File,
        "a/b": FileType.Directory,
        "nothing": FileType.NotFound,
    }
    assert infos["a/d"].size == 3
    assert infos["a/d"].mtime_ns // 1_000_000 == store.head("a/d").modified_ms
    selected = {info.path for info in filesystem.get_file_info(FileSelector("a", recursive=True))}
    assert selected == {"a/b", "a/b/c", "a/d"}
    assert {info.path for info in filesystem.get_file_info(FileSelector("a"))} == {"a/b", "a/d"}
    assert filesystem.get_file_info(FileSelector("no", allow_not_found=True)) == []
    with pytest.raises(FileNotFoundError):
        filesystem.get_file_info(FileSelector("no"))


def test_a_missing_file_is_a_missing_file(store):
    """Arrow's callers see FileNotFoundError on every store."""
    for call in (store.filesystem().open_input_file, store.filesystem().open_input_stream):
        with pytest.raises(FileNotFoundError):
            call("nothing")


def test_copy_move_and_delete(store):
    """The rest of the file system's verbs."""
    filesystem = store.filesystem()
    store.put("a/x", b"1")
    filesystem.create_dir("b")
    filesystem.copy_file("a/x", "b/y")
    filesystem.move("b/y", "b/z")
    filesystem.delete_file("a/x")
    assert [meta.key for meta in store.list("")] == ["b/z"]
    filesystem.delete_dir("b")
    assert [meta.key for meta in store.list("")] == []
    with pytest.raises(OSError):
        filesystem.delete_file("a/x")


@pytest.fixture
def memory():
    return open_store(f"memory://{uuid4().hex}")


def test_our_errors_come_through_arrow_as_they_are(memory):
    """The facts of an error survive the way through C++."""
    with pytest.raises(ObjectNotFoundError) as caught:
        memory.filesystem().open_input_file("nothing")
    assert caught.value.key == "nothing"
    faulty = FaultyStore(memory, fail_at=0, only=["put"])
    stream = faulty.filesystem().open_output_stream("x")
    stream.write(b"1")
    with pytest.raises(StorageError, match="injected"):
        stream.close()


def test_appending_and_deleting_everything_are_refused(memory):
    """Objects are written once; no call empties a store."""
    memory.put("x", b"1")
    filesystem = memory.filesystem()
    calls = [
        lambda: filesystem.open_append_stream("x"),
        lambda: filesystem.delete_dir_contents("", accept_root_dir=True),
        lambda: filesystem.delete_dir(""),
    ]
    for call in calls:
        with pytest.raises(OSError):
            call()
    assert memory.get("x") == b"1"


def test_a_file_nobody_closed_never_appears(store):
    """A writer that gives up leaves no half file behind its back (the local file system may)."""
    if type(store).__name__ == "LocalStore":
        store = FaultyStore(store)
    stream = store.filesystem().open_output_stream("half")
    stream.write(b"half of it")
    del stream
    gc.collect()
    assert list(store.list("")) == []


def test_opening_a_parquet_file_takes_few_requests(memory):
    """Footer and one column of one row group: a look, the tail, the data."""
    write(memory.filesystem(), "x.parquet")
    counted = FaultyStore(memory)
    with counted.filesystem().open_input_file("x.parquet") as file:
        parquet = pq.ParquetFile(file)
        assert [name for name, _ in counted.calls] == ["head", "get_range"]
        parquet.read_row_group(1, columns=["text"])
    assert len(counted.calls) <= 4


def test_reading_a_file_through_takes_few_requests():
    """Small sequential reads grow into large requests, none of which gets a byte twice."""
    data, requests = random.Random(1).randbytes(30_000_000), []

    def fetch(start: int, length: int) -> bytes:
        requests.append(length)
        return data[start : start + length]

    file = ReadAhead(fetch, len(data))
    assert b"".join(iter(lambda: file.read(10_000), b"")) == data
    assert len(requests) < 16
    assert sum(requests) < len(data) + 200_000


def test_scattered_reads_do_not_fetch_the_whole_file():
    """A reader that picks small pieces of a large file pays for pieces."""
    size, requests = 1 << 30, []

    def fetch(start: int, length: int) -> bytes:
        requests.append(length)
        return bytes(length)

    file = ReadAhead(fetch, size)
    for start in range(0, size - 100, size // 50):
        file.seek(start)
        assert len(file.read(100)) == 100
    assert sum(requests) <= 51 * 64 * 1024


offsets = st.integers(0, 400_000)


@given(
    st.integers(0, 300_000),
    st.lists(st.tuples(offsets, st.sampled_from([0, 1, 100, 65_536, 65_537, 300_000]))),
)
def test_any_sequence_of_reads_gives_the_bytes_of_the_object(size, reads):
    """Against a file in memory: same bytes, same positions, never more requested than is there."""
    data = random.Random(size).randbytes(size)

    def fetch(start: int, length: int) -> bytes:
        assert 0 <= start
        assert 0 < length
        assert start + length <= size
        return data[start : start + length]

    file, reference = ReadAhead(fetch, size), io.BytesIO(data)
    for start, length in reads:
        assert file.seek(start) == reference.seek(start)
        assert file.read(length) == reference.read(length)
        assert file.read(10) == reference.read(10)
    file.seek(-min(size, 8), io.SEEK_END)
    assert file.read() == data[-8:] if size else file.read() == b""
    assert file.tell() == size


def test_one_file_can_be_read_by_many_threads(memory):
    """Arrow reads the columns of one file from several threads at once."""
    data = random.Random(3).randbytes(3_000_000)
    memory.put("x", data)
    file, wrong = memory.filesystem().open_input_file("x"), []

    def check(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(200):
            start, length = choose.randrange(len(data)), choose.choice([10, 1000, 100_000])
            if bytes(file.read_at(length, start)) != data[start : start + length]:
                wrong.append((start, length))

    threads = [threading.Thread(target=check, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_closed_file_reads_nothing():
    """And nothing is fetched for it; seeking in front of the start is an error."""
    file = ReadAhead(lambda start, length: bytes(length), 10)
    with pytest.raises(ValueError, match="seek"):
        file.seek(-1)
    buffer = bytearray(4)
    assert file.readinto(buffer) == 4
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(1)
