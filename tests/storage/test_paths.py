"""Paths in actions: whatever they say, the result is a file of this table or an error."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indextables.errors import StorageError, UnsafePathError
from indextables.storage import action_path, action_paths, file_key, file_keys
from indextables.storage import location as module
from indextables.storage.base import why_not_a_key

CASES = [
    line.split("\t")
    for line in (Path(__file__).parent / "cases" / "paths.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
nasty = st.text(st.sampled_from("ab./\\%:2eEfF5cC0 é\0\n_-=~?#"), max_size=14)


def key_or_none(path: str, root: str) -> str | None:
    try:
        return file_key(path, root)
    except UnsafePathError:
        return None


@pytest.mark.parametrize(
    ("path", "root", "expected", "why"), CASES, ids=[f"{c[0]} in {c[1]}" for c in CASES]
)
def test_a_path_is_a_file_of_this_table_or_refused(path, root, expected, why):
    """The table of cases, one line each with its reason; the vectorised form agrees."""
    text = ast.literal_eval(path)
    if expected == "!":
        with pytest.raises(UnsafePathError) as caught:
            file_key(text, root)
        assert caught.value.path == text
        assert ascii(text) in str(caught.value)
        with pytest.raises(UnsafePathError):
            file_keys(pa.array(["fine", text]), root)
    else:
        key = ast.literal_eval(f"'{expected}'")
        assert file_key(text, root) == key, why
        assert file_keys(pa.array(["fine", text]), root).to_pylist() == ["fine", key]


@given(nasty | st.text())
@example("..%2f..%2fetc")
@example("_transaction_log%2fx")
def test_no_text_leaves_the_table(path):
    """Whatever the text: joined to the root, the result is below the root, and not in the log."""
    key = key_or_none(path, "/tables/t")
    if key is not None:
        assert why_not_a_key(key) is None
        assert Path("/tables/t", key).is_relative_to("/tables/t")
        assert Path("/tables/t", key).resolve().is_relative_to("/tables/t")
        assert not key.startswith("_transaction_log/")


@given(st.lists(nasty | st.text(), max_size=5), st.sampled_from(["/t", "s3://b/t", "file:///a%20b"]))
def test_the_vectorised_form_agrees_with_the_plain_one(paths, root):
    """A column gives what its rows give one by one, or an error if one of them does."""
    try:
        column = pa.array(paths, pa.string())
    except UnicodeEncodeError:
        return  # a lone surrogate is in no Arrow column
    expected = [key_or_none(path, root) for path in paths]
    if None in expected:
        with pytest.raises(UnsafePathError):
            file_keys(column, root)
    else:
        assert file_keys(column, root).to_pylist() == expected


@given(nasty | st.text(), st.sampled_from(["/t", "s3://b/t"]))
def test_a_key_comes_back_from_its_path(text, root):
    """file_key(action_path(key)) == key for every key outside the log; the path is plain ASCII."""
    if why_not_a_key(text) or text.split("/")[0] == "_transaction_log":
        with pytest.raises((UnsafePathError, StorageError)):
            file_key(action_path(text), root)
        return
    path = action_path(text)
    assert path.isascii()
    assert file_key(path, root) == text
    assert action_paths(pa.array(["plain", text])).to_pylist() == ["plain", path]
    for absolute in (
        f"{root}/{path}",
        f"file://{root}/{path}" if root == "/t" else f"s3a{root[2:]}/{path}",
    ):
        assert file_key(absolute, root) == text


def test_a_missing_path_is_refused():
    """A null in the column is an action without a path."""
    with pytest.raises(UnsafePathError):
        file_keys(pa.array(["x", None]), "/t")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_the_type_of_a_column_is_kept(kind):
    """Both string types go through, chunked or not."""
    column = pa.array(["a", "b%20c"], kind)
    assert file_keys(column, "/t").equals(pa.array(["a", "b c"], kind))
    chunked = file_keys(pa.chunked_array([column, column]), "/t")
    assert chunked.to_pylist() == ["a", "b c"] * 2
    assert chunked.type == kind


def test_plain_paths_cost_no_python_per_row(monkeypatch):
    """A hundred thousand ordinary paths: `file_key` is not called once, and the column is not copied."""
    paths = pa.array(
        [f"data/0-3f2a/day=2024-01-{i % 28:02}/part-{i:06}.parquet" for i in range(100_000)]
    )
    monkeypatch.setattr(module, "file_key", None)
    monkeypatch.setattr(module, "action_path", None)
    start = time.perf_counter()
    assert file_keys(paths, "/t") is paths
    assert action_paths(paths) is paths
    assert time.perf_counter() - start < 2
