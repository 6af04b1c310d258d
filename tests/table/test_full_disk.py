"""What the system refuses is an error of ours that names the file; what was committed stays as it was."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommitStateUnknownError, StorageError

ROWS = pa.table({"a": range(100), "b": [f"{n * 7919 % 99991}" for n in range(100)]})


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """The system refuses to let any file grow beyond this, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def table(tmp_path):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS)
    return table


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append(ROWS),
        lambda table: table.overwrite(ROWS),
        lambda table: table.delete("a = 5"),
    ],
    ids=["append", "overwrite", "delete"],
)
def test_a_data_file_that_cannot_be_written_is_an_error_of_ours(table, tmp_path, change):
    """It names the file, leaves none behind, and the table is what it was."""
    with (
        no_file_above(200),
        pytest.raises(StorageError, match=r"data/1-.*\.parquet' cannot be written"),
    ):
        change(table)
    assert table.snapshot().version == 1
    assert table.scan().to_arrow().num_rows == 100
    assert len(list((tmp_path / "t" / "data").rglob("*.parquet"))) == 1


def test_a_directory_that_cannot_be_made_is_an_error_of_ours(tmp_path):
    """As for a user who may not write: Arrow's own PermissionError is no error of this library."""
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    (tmp_path / "t" / "data").write_text("a file where a directory should be")
    with pytest.raises(StorageError, match="cannot be written"):
        table.append(ROWS)


def test_a_commit_that_does_not_fit_the_disk_is_a_plain_failure(table):
    """Nothing is there, and the system said why: whether it was committed is not in doubt."""
    with no_file_above(200), pytest.raises(StorageError, match="too large") as caught:
        table.delete("a >= 0")
    assert not isinstance(caught.value, CommitStateUnknownError)
    assert it.Table(table.uri).scan().to_arrow().num_rows == 100
    table.delete("a >= 0")
    assert table.snapshot().num_files == 0
