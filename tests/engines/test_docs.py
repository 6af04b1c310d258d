"""The code of docs/engines.md does what the page says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    """All blocks in their order, in an empty directory; each asserts what it shows."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 8
    space: dict[str, object] = {}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(PAGE), "exec"), space)
    assert "splits kept" in capsys.readouterr().out
