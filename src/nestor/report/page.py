"""Put the page together: one HTML file that needs nothing else.

All data stands in blobs of base64, so no text of a log can end a script or begin a tag, and a
content security policy lets the browser run our own script and load nothing.
"""

import base64
import hashlib
from importlib import resources
from typing import Any, Final

from nestor.report.packing import Pack

SCRIPTS: Final = (
    "data.js",
    "format.js",
    "table.js",
    "query.js",
    "treemap.js",
    "overrides.js",
    "details.js",
    "overview.js",
    "decisions.js",
    "main.js",
)
"""Those of the page of a program, in the order in which it runs them, as one script."""

SHEET_SCRIPTS: Final = ("data.js", "format.js", "table.js", "query.js", "chart.js", "sheet.js")
"""Those of a page of charts and tables."""


def page(data: dict[str, Any], pack: Pack) -> str:
    """Return the text of the page of a program.

    :param data: as :func:`nestor.report.tables.page_data` describes it.
    """
    return _page("page.html", SCRIPTS, data, pack)


def sheet_page(data: dict[str, Any]) -> str:
    """Return the text of a page of charts and tables.

    :param data: as :func:`nestor.report.sheet.sheet` makes it.
    """
    return _page("sheet.html", SHEET_SCRIPTS, data, Pack())


def _page(body: str, scripts: tuple[str, ...], data: dict[str, Any], pack: Pack) -> str:
    first = pack.text(data)
    script = "\n".join(("(() => {", '"use strict";', *map(_asset, scripts), "})();"))
    style = _asset("style.css")
    blobs = "\n".join(
        f'<script type="text/plain" id="blob-{number}">{blob}</script>'
        for number, blob in enumerate(pack.blobs)
    )
    security = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    text = _asset("frame.html")
    for name, value in (
        ("BODY", _asset(body)),
        ("SECURITY", security),
        ("STYLE", style),
        ("FIRST", str(first)),
        ("BLOBS", blobs),
        ("SCRIPT", script),
    ):
        text = text.replace(f"@{name}@", value, 1)
    return text


def _asset(name: str) -> str:
    return (resources.files("nestor.report") / "page" / name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
