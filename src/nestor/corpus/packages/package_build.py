"""Run a package's own build under the wrappers, within limits of time and disk."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.orphans import killed_if_left, marked
from nestor.corpus.packages.failure import PackageError, Reason
from nestor.corpus.packages.sources import PROFILES
from nestor.messages import build_error
from nestor.temporary import run_folder

_POLL_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 10.0
_GIB: Final = 1 << 30
_TAIL_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class PackageLimits:
    """What the build of one package may use."""

    minutes: float = 30.0
    """Wall-clock time of one build."""
    gigabytes: float = 4.0
    """Disk that the sources, what the build makes and its captures may take."""


def build_package(
    source: Path,
    work: Path,
    environment: Mapping[str, str],
    limits: PackageLimits,
    jobs: int,
    log: Path,
) -> None:
    """Run the build of the unpacked package in ``source``, without tests and documentation.

    Nothing is installed and no package is packed: the target is ``build-arch`` of
    ``debian/rules``, or ``build`` where that is all there is.

    :param work: the folder whose size is limited.
    :param environment: the variables of the build, those of the wrappers among them.
    :param log: the file that gets the output of the build.
    :raises PackageError: if the build fails or leaves its limits.
    """
    ours = {
        **environment,
        "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
        "DEB_BUILD_OPTIONS": f"nocheck nodoc parallel={jobs}",
        "DEB_BUILD_PROFILES": PROFILES.replace(",", " "),
        "QMAKESPEC": "linux-clang",  # that for GCC reads search paths which clang does not print
        "FORCE_UNSAFE_CONFIGURE": "1",  # gnulib refuses to be configured by root without it
        **marked(run_folder()),
    }
    # A tree of version control, or of a tar made elsewhere, may have lost the mode.
    rules = source / "debian" / "rules"
    rules.chmod(rules.stat().st_mode | 0o111)
    until = time.monotonic() + 60 * limits.minutes
    command = ["dpkg-buildpackage", "-d", "-us", "-uc", "-b"]
    status = _run([*command, "-Tbuild-arch"], source, ours, work, limits, until, log)
    if status != 0 and re.search(r"No rule to make target .build-arch'", _tail(log)):
        status = _run([*command, "-Tbuild"], source, ours, work, limits, until, log)
    if status != 0:
        said = build_error(_tail(log)) or f"exit status {status}"
        raise PackageError("build failed", said)


def _run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    work: Path,
    limits: PackageLimits,
    until: float,
    log: Path,
) -> int:
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            detail = f"{command[0]} cannot be run ({error.strerror}); it is in dpkg-dev"
            raise PackageError("build dependencies", detail) from error
        with killed_if_left(process.pid):
            look = time.monotonic()
            while (status := process.poll()) is None:
                now = time.monotonic()
                if now > until:
                    _stop(process, "too long", f"more than {limits.minutes:g} minutes")
                if now > look:
                    look = now + _LOOK_SECONDS
                    if size_of(work) + log.stat().st_size > limits.gigabytes * _GIB:
                        _stop(process, "too big", f"more than {limits.gigabytes:g} GiB on disk")
                time.sleep(_POLL_SECONDS)
        if size_of(work) > limits.gigabytes * _GIB:
            raise PackageError("too big", f"more than {limits.gigabytes:g} GiB on disk")
        return status


def _stop(process: "subprocess.Popen[bytes]", reason: Reason, detail: str) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    raise PackageError(reason, detail)


def size_of(folder: Path) -> int:
    """Return the bytes on disk of the files below a folder; a build may be changing it."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118  speed
            except OSError:
                continue
    return total


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read().decode(errors="replace")
