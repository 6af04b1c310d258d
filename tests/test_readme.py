"""The README does what it says: its code runs, its commands run, its links lead somewhere."""

import shlex
from pathlib import Path

import pytest

import indextables as it
from support.commands import run
from support.pages import ROOT, blocks, links

PAGES = ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md"))]


def is_for_spark(code):
    return "spark" in code


def test_the_code_that_needs_no_jvm_runs_in_the_order_it_is_read(tmp_path, monkeypatch, capsys):
    """One reader, one Python session, then one shell, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("README.md", "python"):
        if not is_for_spark(code):
            exec(compile(code, "README.md", "exec"), names)  # noqa: S102
    assert "1 of 2 splits kept" in capsys.readouterr().out
    assert it.Table("articles").scan().count() == 5
    assert names["people"].scan("id = 2").to_arrow()["name"].to_pylist() == ["Grace"]
    shell = [
        line.removeprefix("$ ") for code in blocks("README.md", "console") for line in code.splitlines()
    ]
    commands = [shlex.split(line, comments=True) for line in shell if line.startswith("indextables ")]
    assert len(commands) >= 6
    for _, *words in commands:
        code, _, err = run(*words)
        assert code == 0, (words, err)
    assert Path("report.html").exists()


def test_every_console_command_exists():
    """`make` targets too."""
    targets = (ROOT / "Makefile").read_text()
    for code in blocks("README.md", "console"):
        for line in code.splitlines():
            program, first, *_ = line.removeprefix("$ ").split()
            assert program in {"make", "indextables"}
            if program == "make":
                assert f"\n{first}:" in targets


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """Within the repository."""
    for target in links(page):
        assert (ROOT / page).parent.joinpath(target).exists(), target
