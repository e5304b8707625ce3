"""The Markdown pages of the project, and what stands in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
)
_FENCED: Final = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_INLINE: Final = re.compile(r"`([^`\n]+)`")
_HEADING: Final = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    """Return a page's path from the repository's root."""
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return _FENCED.sub("", page.read_text())


def code(page: Path) -> Iterator[str]:
    """Yield each line of a page's code blocks, and each piece of code within a line of text."""
    for block in _FENCED.findall(page.read_text()):
        yield from block.replace("\\\n", " ").splitlines()[1:-1]
    yield from _INLINE.findall(prose(page))


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links within the repository."""
    for target in _LINK.findall(_INLINE.sub("", prose(page))):
        if "://" not in target and not target.startswith("mailto:"):
            yield target


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found
