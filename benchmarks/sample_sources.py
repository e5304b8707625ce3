"""Which packages of a draw can the mirrors provide at all? Their files are looked up, not fetched.

    python -m benchmarks.sample_sources DRAW [--results benchmarks/results/sample]

Mirrors that lag or keep a part of the archive answer 404 for the rest. Each package without all of
its files becomes a line of RESULTS/<language>.jsonl with the reason ``no source``, as it would if
``sample_judgement`` had tried it, but in a tenth of a second instead of ten.
"""

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from nestor.corpus.fetch.debian import Archive
from nestor.files import write_atomically
from nestor.temporary import temporary_folder

_REQUESTS: Final = 16
"""Look-ups at the same time."""


def addresses(lists: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each source package that apt's downloaded lists name, with the addresses of its files.

    A package comes once for each of its versions.
    """
    for path in sorted(lists.glob("*_Sources")):
        mirror = path.name.partition("_dists_")[0].replace("_", "/")
        for paragraph in path.read_text(errors="replace").split("\n\n"):
            name = re.search(r"^Package: (\S+)", paragraph, re.MULTILINE)
            folder = re.search(r"^Directory: (\S+)", paragraph, re.MULTILINE)
            files = re.search(r"^Files:\n((?: .*\n?)+)", paragraph, re.MULTILINE)
            if name and folder and files:
                names = [line.split()[-1] for line in files[1].splitlines()]
                yield name[1], [f"http://{mirror}/{folder[1]}/{file}" for file in names]


def missing(address: str) -> bool:
    """Tell whether the mirror answers that it has no such file; no answer is not that."""
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=60):
            return False
    except urllib.error.HTTPError as error:
        return error.code == 404
    except OSError:
        return False


def main() -> int:
    """Look up the files of a draw and keep a line for each package that lacks some."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("draw", type=Path, help="a draw as JSON")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results/sample"))
    options = parser.parse_args()
    draw = json.loads(options.draw.read_text())
    place = options.results / f"{draw['language'].replace('+', 'x')}.jsonl"
    before = place.read_text() if place.exists() else ""
    done = {json.loads(line)["package"] for line in before.splitlines()}
    packages = [p for p in draw["packages"] if p["name"] not in done]
    names = {p["name"] for p in packages}
    with temporary_folder("apt") as state:
        archive = Archive(Path(state), binaries=True)
        versions: dict[str, list[list[str]]] = {}
        for name, files in addresses(archive.lists):
            if name in names:
                versions.setdefault(name, []).append(files)
    with ThreadPoolExecutor(_REQUESTS) as pool:
        files = sorted({file for found in versions.values() for each in found for file in each})
        absent = {file for file, gone in zip(files, pool.map(missing, files), strict=True) if gone}
    lines = [
        _line(package)
        for package in packages
        if all(not absent.isdisjoint(files) for files in versions.get(package["name"], []))
    ]
    write_atomically(place, before + "".join(f"{json.dumps(line)}\n" for line in lines))
    print(f"{len(packages) - len(lines)} of {len(packages)} packages can be fetched")
    return 0


def _line(package: dict[str, Any]) -> dict[str, Any]:
    detail = "the mirror lists the package and lacks files of it"
    return {
        "package": package["name"],
        "language": package["language"],
        "half": package["half"],
        "failures": [{"reason": "no source", "detail": detail, "partial": False}],
        "modules": 0,
        "programs": [],
    }


if __name__ == "__main__":
    sys.exit(main())
