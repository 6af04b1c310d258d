"""The code blocks of a documentation page."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    """The blocks in this language, in the page's order."""
    found = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [code for name, code in found if name == language]


def links(page):
    """The files that a page links to."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
