"""Sources from the Debian archive, downloaded by apt with the user's own mirrors and keys.

apt gets a private, temporary state whose only entries are the system's own, changed to list
sources: nothing of the system is changed, no privilege is needed, and proxies and signatures stay
apt's work.
"""

import contextlib
import hashlib
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from nestor.errors import NestorError

_ETC = Path("/etc/apt")


class DebianError(NestorError):
    """The archive or apt cannot provide the sources."""


class Archive:
    """The Debian archive as apt sees it; ``state`` is an empty folder for apt's files.

    The constructor downloads the mirror's list of sources (about 10 MB), and with ``binaries`` that
    of binary packages (as much again).

    :raises DebianError: if apt has no entry for a Debian mirror, or if no mirror answers or lists
        sources.
    """

    def __init__(self, state: Path, etc: Path = _ETC, *, binaries: bool = False) -> None:
        parts = state / "parts"
        for folder in ("parts", "lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True)
        for name, text in source_entries(etc, binaries=binaries).items():
            (parts / name).write_text(text, encoding="utf-8")
        if not any(parts.iterdir()):
            raise DebianError(
                "apt has no entry for a Debian mirror, so sources cannot be fetched; capture your "
                "own project with 'nestor corpus capture', or add a Debian entry for apt."
            )
        self._options = [
            "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={parts}",
            "-o", f"Dir::State::lists={state / 'lists'}", "-o", f"Dir::Cache={state / 'cache'}",
            "-o", "APT::Update::Post-Invoke-Success::=true",
            "-o", "Acquire::GzipIndexes=false",  # the lists are read here, too
        ]  # fmt: skip
        self.lists = state / "lists"
        self._update(state)

    def _update(self, state: Path) -> None:
        """Download the lists of sources; apt itself calls it a success when none could be had."""
        done = self._run(["update"], state)
        if any((state / "lists").glob("*_Sources*")):
            return
        failed = re.search(
            r"^[WE]: Failed to fetch (\S+Release)\s+(.+)$", done.stderr, re.MULTILINE
        )
        if failed is not None:
            raise DebianError(
                f"No mirror of apt answers ({failed[1]}: {failed[2].strip()}), and sources come "
                "from there: look at the network or the proxy and fetch again."
            )
        raise DebianError(
            "None of apt's mirrors lists sources; add a Debian mirror that does to apt, or capture "
            "your own project with 'nestor corpus capture'."
        )

    def download(
        self, package: str, version: str, sha256: Mapping[str, str], folder: Path
    ) -> list[Path]:
        """Download the sources of ``package`` at ``version`` into ``folder``.

        ``sha256`` pins the upstream files by name; they are returned in its order. Raises
        :class:`DebianError` when the archive does not have them or has others.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._download(package, version, folder)
        files = []
        for name, digest in sha256.items():
            path = folder / name
            if not path.exists():
                raise DebianError(f"{package} {version} has no file {name} in this archive.")
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise DebianError(f"{name} is not the file that the recipe pins (wrong sha256).")
            files.append(path)
        return files

    def source_package(self, package: str, folder: Path) -> Path:
        """Download the whole source package into ``folder``; return its ``.dsc`` file.

        It is the newest version, or another one if the mirrors lack files of that one.

        :raises DebianError: if the archive does not have it.
        """
        fetch = ["source", "--download-only", "--only-source"]
        try:
            self._apt([*fetch, package], folder)
        except DebianError:
            versions = list(dict.fromkeys(self._versions(package)))
            for version in versions if len(versions) > 1 else ():
                for path in filter(Path.is_file, folder.iterdir()):
                    path.unlink()
                with contextlib.suppress(DebianError):
                    self._apt([*fetch, f"{package}={version}"], folder)
                    break
            else:
                raise
        found = sorted(folder.glob("*.dsc"))
        if not found:
            raise DebianError(f"Apt's mirrors have no source package {package}.")
        return found[0]

    def install_build_dependencies(self, source: Path, profiles: str) -> tuple[str, ...]:
        """Install what the unpacked sources in ``source`` need to be built; needs root.

        Nothing is removed; recommended packages stay out.

        :param profiles: build profiles, separated by commas.
        :return: the packages that were installed, by name.
        :raises DebianError: if apt cannot install them.
        """
        command = ["-y", "--no-install-recommends", "--no-remove", "--arch-only",
                   "-o", "DPkg::Lock::Timeout=600", "-o", f"APT::Build-Profiles={profiles}",
                   "build-dep", f"{source}/"]  # fmt: skip
        done = self._checked(command, source.parent, minutes=30)
        return tuple(re.findall(r"^Setting up ([^ :]+)", done, re.MULTILINE))

    def _download(self, package: str, version: str, folder: Path) -> None:
        """Download ``version``, or another Debian revision of the same upstream version.

        Revisions come and go in the archive; the upstream files, whose hashes decide, stay.
        """
        # The upstream tarball alone: Debian's own part changes with every revision, so a mirror
        # that lags may not have it, and nobody here reads it.
        fetch = ["source", "--download-only", "--only-source", "--tar-only"]
        try:
            self._apt([*fetch, f"{package}={version}"], folder)
        except DebianError as error:
            versions = self._versions(package)
            others = [v for v in versions if v != version and _upstream(v) == _upstream(version)]
            for other in others:
                with contextlib.suppress(DebianError):
                    self._apt([*fetch, f"{package}={other}"], folder)
                    return
            if not versions:
                raise DebianError(f"Apt's mirrors have no source package {package}.") from error
            if version not in versions and not others:
                raise DebianError(
                    f"Apt's mirrors have {package} {', '.join(versions)}, but not {version}."
                ) from error
            raise

    def _versions(self, package: str) -> list[str]:
        """Return the versions of a source package that the mirror lists, in its order."""
        done = subprocess.run(
            ["apt-cache", *self._options, "showsrc", "--only-source", package],  # noqa: S607
            capture_output=True, encoding="utf-8", errors="replace", timeout=600, check=False,
        )  # fmt: skip
        return re.findall(r"^Version: (\S+)$", done.stdout, re.MULTILINE)

    def _apt(self, arguments: list[str], folder: Path) -> None:
        self._checked(arguments, folder, minutes=10)

    def _checked(self, arguments: list[str], folder: Path, minutes: float) -> str:
        """Run apt-get and return what it printed.

        :raises DebianError: if it fails.
        """
        done = self._run(arguments, folder, minutes)
        if done.returncode != 0:
            errors = [x[3:] for x in done.stderr.splitlines() if x.startswith("E: ")]
            reason = errors[0] if errors else f"exit status {done.returncode}"
            command = next((a for a in arguments if not a.startswith("-")), "")
            raise DebianError(f"apt-get {command} failed: {reason}")
        return done.stdout

    def _run(
        self, arguments: list[str], folder: Path, minutes: float = 10
    ) -> "subprocess.CompletedProcess[str]":
        """Run apt-get in ``folder``; its messages are in English."""
        try:
            return subprocess.run(
                ["apt-get", "-q", *self._options, *arguments],  # noqa: S607  the user's apt
                cwd=folder, capture_output=True, encoding="utf-8", errors="replace",
                timeout=60 * minutes, check=False, stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            )  # fmt: skip
        except FileNotFoundError:
            raise DebianError(
                "apt-get is not installed, so Debian sources cannot be fetched; capture your own "
                "project with 'nestor corpus capture'."
            ) from None
        except subprocess.TimeoutExpired:
            raise DebianError(
                f"apt-get took more than {minutes:g} minutes; look at the network."
            ) from None


def _upstream(version: str) -> str:
    """Return a version without Debian's revision."""
    return version.rpartition("-")[0] or version


def source_entries(etc: Path, *, binaries: bool = False) -> dict[str, str]:
    """Return apt's entries under ``etc``, changed to list sources; file name → text.

    :param binaries: list binary packages, too.
    """
    entries = {}
    lists = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]
    for path in (p for p in lists if p.is_file()):
        lines = {_one_line(line) for line in _read(path).splitlines()} - {""}
        if binaries:
            lines |= {f"deb {line.partition(' ')[2]}" for line in lines}
        if lines:
            entries[path.name] = "\n".join(sorted(lines)) + "\n"
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        paragraphs = re.split(r"\n\s*\n", _read(path))
        types = "deb deb-src" if binaries else "deb-src"
        kept = [text for text in (_paragraph(p, types) for p in paragraphs) if text]
        if kept:
            entries[path.name] = "\n\n".join(kept) + "\n"
    return entries


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _one_line(line: str) -> str:
    """Return a ``deb`` or ``deb-src`` line as ``deb-src``; nothing for any other."""
    words = line.split("#", 1)[0].split()
    return " ".join(["deb-src", *words[1:]]) if words and words[0] in ("deb", "deb-src") else ""


def _paragraph(text: str, types: str) -> str:
    """Return a deb822 paragraph, changed to list ``types``; nothing for one that is off."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    fields = {line.split(":", 1)[0].strip().lower() for line in lines if ":" in line}
    off = any(re.fullmatch(r"enabled:\s*(no|false|off|0)\s*", line.lower()) for line in lines)
    if off or not {"types", "uris"} <= fields:
        return ""
    return "\n".join(
        f"Types: {types}" if line.lower().startswith("types:") else line for line in lines
    )


def extract(tarball: Path, folder: Path) -> Path:
    """Unpack ``tarball`` in the new folder ``folder``; return the top folder of the sources."""
    folder.mkdir(parents=True)
    with tarfile.open(tarball) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python before 3.11.4: take plain files and folders with plain names only.
            plain = [m for m in archive if (m.isreg() or m.isdir()) and _stays_inside(m.name)]
            archive.extractall(folder, members=plain)  # noqa: S202
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _stays_inside(name: str) -> bool:
    return not name.startswith("/") and ".." not in Path(name).parts
