"""Sources and build dependencies of a package, as Debian's own tools provide them."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nestor.corpus.fetch.debian import Archive, DebianError
from nestor.corpus.packages.failure import PackageError
from nestor.messages import build_error

PROFILES: Final = "nocheck,nodoc"
"""Build profiles: neither tests nor documentation are built, so what they need is not installed."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.+-]+")
_ENGLISH: Final = {"LC_ALL": "C.UTF-8"}


class Provider:
    """Provides sources and build dependencies; apt's lists are downloaded when first needed.

    :param state: an empty folder for apt's own files; the system's lists are left alone.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._archive: Archive | None = None

    @property
    def archive(self) -> Archive:
        """The archive with its lists of sources and of binary packages.

        :raises DebianError: if there is none.
        """
        if self._archive is None:
            self._archive = Archive(self._state, binaries=True)
        return self._archive

    def unpacked(self, package: str, folder: Path) -> Path:
        """Return the folder of a package's sources, patched as Debian builds them.

        :param package: the name of a source package, or the path of a ``.dsc`` file or of a folder
            of unpacked sources (a word with a slash), which is copied.
        :param folder: a new folder for them.
        :raises PackageError: if they cannot be had.
        """
        folder.mkdir(parents=True)
        place = folder / "source"
        if "/" in package and Path(package).is_dir():
            shutil.copytree(package, place, symlinks=True)
        else:
            self._extract(package, folder, place)
        if not (place / "debian" / "rules").is_file():
            raise PackageError("no source", f"{package} has no debian/rules")
        return place

    def _extract(self, package: str, folder: Path, place: Path) -> None:
        if "/" in package:
            description = Path(package).resolve()
        elif _NAME.fullmatch(package):
            try:
                description = self.archive.source_package(package, folder)
            except DebianError as error:
                raise PackageError("no source", str(error)) from error
        else:
            raise PackageError("no source", f"{package!r} is no name of a source package")
        done = _run(["dpkg-source", "--no-check", "-x", str(description), str(place)], folder)
        if done.returncode != 0:
            raise PackageError("no source", build_error(done.stdout) or "no message")

    def install_dependencies(self, source: Path) -> tuple[str, ...]:
        """Install what a build needs and return the packages that are new.

        Only what is missing is installed, nothing is removed, and recommended packages stay out.

        :raises PackageError: if something is missing and cannot be installed.
        """
        missing = self._unmet(source)
        if not missing:
            return ()
        if os.geteuid() != 0:
            raise PackageError(
                "build dependencies", f"{missing} is missing, and only root can install packages"
            )
        try:
            installed = self.archive.install_build_dependencies(source, PROFILES)
        except DebianError as error:
            raise PackageError("build dependencies", str(error)) from error
        missing = self._unmet(source)
        if missing:
            raise PackageError("build dependencies", f"{missing} is still missing")
        return installed

    def _unmet(self, source: Path) -> str:
        """Return the unmet build dependencies as text, empty if there are none."""
        command = ["dpkg-checkbuilddeps", "-B", "-P", PROFILES, "debian/control"]
        done = _run(command, source)
        found = re.search(r"Unmet build (?:dependencies|conflicts): (.+)", done.stdout)
        if done.returncode != 0 and found is None:
            raise PackageError("build dependencies", build_error(done.stdout) or "no message")
        return found[1].strip() if found else ""


def version_of(source: Path) -> str:
    """Return the version that ``debian/changelog`` names first, empty if it names none."""
    try:
        with (source / "debian" / "changelog").open(encoding="utf-8", errors="replace") as lines:
            found = re.match(r"\S+ \(([^)]+)\)", next(lines, ""))
    except OSError:
        return ""
    return found[1] if found else ""


def _run(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=600, check=False,
            env={**os.environ, **_ENGLISH},
        )  # fmt: skip
    except FileNotFoundError:
        raise PackageError(
            "build dependencies", f"{command[0]} is not installed (it is in dpkg-dev)"
        ) from None
    except subprocess.TimeoutExpired:
        raise PackageError("no source", f"{command[0]} took more than ten minutes") from None
