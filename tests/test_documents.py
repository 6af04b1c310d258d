"""Pages that are made from the code are those that are checked in, and what pages say of the code is true."""

import importlib.util
import re
import subprocess
import sys

import pytest

from support.pages import ROOT


def script(name):
    """A program of scripts/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = script("pages")


@pytest.mark.parametrize("page", sorted(pages.PAGES))
def test_a_page_that_is_made_is_the_one_checked_in(page):
    """Run `python scripts/pages.py` after a change of options, help texts or decisions."""
    assert (ROOT / "docs" / page).read_text() == pages.PAGES[page]()


def test_every_room_tells_its_story_in_one_line():
    """The first thing a reader of a folder opens."""
    for init in (ROOT / "src" / "indextables").rglob("__init__.py"):
        first = init.read_text().split("\n", 1)[0]
        assert re.match(r'""".{20,}', first), init


def test_files_that_the_architecture_names_are_there():
    """A page that leads nowhere is worse than none."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text[text.index("| You look for") : text.index("## Rules")]
    named = [
        name
        for line in table.splitlines()[2:]
        if line.startswith("|")
        for name in re.findall(r"`([\w/]+(?:\.py|/)?)`", line.split("|")[2])
    ]
    assert len(named) > 20
    for name in named:
        assert (ROOT / "src" / "indextables" / name).exists(), name


def test_the_way_of_an_operation_is_as_short_as_the_architecture_says():
    """Modules that a warm scan, append and upsert pass through; `scripts/walk.py` measures Spark's, too."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "walk.py", "--no-spark"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^\w+ +\d+ modules", done.stdout, re.MULTILINE)) == 3


def test_the_tests_that_the_security_page_names_are_there():
    """A promise without a test is a wish."""
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "SECURITY.md").read_text())
    assert len(named) > 8
    for name in named:
        assert (ROOT / name).exists(), name


def test_modules_that_pages_and_docstrings_name_are_there():
    """A module that was moved is named by its new place."""
    rooms = "core|log|plan|ops|parquet|engines|sql|table|storage|cli|scan|arrow"
    source = ROOT / "src" / "indextables"
    files = {str(file.relative_to(source)) for file in source.rglob("*.py")}
    lost = []
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *source.rglob("*.py")]:
        for name in re.findall(rf"`((?:{rooms})/[\w/]+\.py)`", page.read_text()):
            if not any(file == name or file.endswith("/" + name) for file in files):
                lost.append((page.name, name))
    assert not lost
