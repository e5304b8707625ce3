"""Find the LLVM installations of this machine and read what each can do.

A toolchain is probed, never assumed: the version comes from the compiler's own words, the
identity from the GNU build ids of its binaries, the abilities from its headers and options.
"""

import functools
import hashlib
import mmap
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.releases import (
    FIRST,
    LAST,
    MAIN_RELEASE,
    Ability,
    Support,
    by_preference,
    missing,
    support,
)
from nestor.errors import NestorError

INSTALL_HINT = (
    f"install LLVM {MAIN_RELEASE} (Debian: apt-get install clang-{MAIN_RELEASE}"
    f" llvm-{MAIN_RELEASE}-dev lld-{MAIN_RELEASE}), or name one with --llvm PREFIX or"
    " NESTOR_LLVM"
)

_RELEASES = f"the plugin is written for LLVM {FIRST} to {LAST}"

_CHANNEL = re.compile(r"^\s*--?([\w-]+)-interactive-channel-base\b", re.MULTILINE)
"""An option of LLVM that opens a channel, as its list of options has it."""


_PLUGIN_HEADERS = ("Plugins", "Passes")
"""Where PassPlugin.h is, since LLVM 22 and before."""


class ToolchainError(NestorError):
    """There is no usable LLVM; the text says what to install."""


@dataclass(frozen=True)
class Toolchain:
    """One LLVM installation: ``prefix/bin/clang`` and what lies around it."""

    prefix: Path
    version: str
    """For example ``22.1.8``."""
    build_id: str
    """Hex digest over the build ids of clang and of the LLVM libraries it loads."""

    @property
    def clang(self) -> Path:
        """The C compiler."""
        return self.prefix / "bin" / "clang"

    @property
    def clangxx(self) -> Path:
        """The C++ compiler."""
        return self.prefix / "bin" / "clang++"

    @property
    def opt(self) -> Path:
        """LLVM's optimiser driver; may be absent (see :func:`capabilities`)."""
        return self.prefix / "bin" / "opt"

    @property
    def lld(self) -> Path:
        """LLVM's ELF linker; may be absent."""
        return self.prefix / "bin" / "ld.lld"

    @property
    def major(self) -> int:
        """The release, for example 22."""
        return int(self.version.split(".")[0])

    def has(self, ability: Ability) -> bool:
        """Tell whether this release has ``ability``."""
        return self.major >= ability.since

    def require(self, ability: Ability) -> None:
        """Refuse, with a sentence, to go on without ``ability``.

        :raises ToolchainError: if this release lacks it.
        """
        if not self.has(ability):
            raise ToolchainError(
                f"LLVM {self.version} in {self.prefix} lacks {ability.name}, which LLVM"
                f" {ability.since} and newer have: {INSTALL_HINT}."
            )


@dataclass(frozen=True)
class Capabilities:
    """What a toolchain offers to Nestor; each entry was looked up, not guessed."""

    support: Support
    """Whether the release is tested, expected to work, or refused."""
    lacks: tuple[str, ...]
    """What newer releases can do."""
    headers: bool
    """The development files are there, so that the plugin can be built."""
    linker: bool
    """lld is there, so that programs can be linked and judged."""
    opt: bool
    """``opt`` is there."""
    channels: tuple[str, ...]
    """Whose advisors can be asked over an interactive channel, in LLVM's own words."""

    def problem(self) -> str | None:
        """Return why policies cannot be used here, or None."""
        if self.support == "refused":
            return f"this release is refused, since {_RELEASES}: {INSTALL_HINT}"
        if not self.headers:
            return f"the development files are missing: {INSTALL_HINT}"
        return None


def discover(llvm: str | None = None) -> list[Toolchain]:
    """Return every LLVM installation found, the best first, each once.

    :param llvm: a prefix, a ``bin`` folder or a clang to look at instead of the machine; a name
        such as ``clang-19``, or ``19`` for short, is looked for on ``PATH``.
    :raises ToolchainError: if ``llvm`` (or ``NESTOR_LLVM``) names no working clang.
    """
    return _best_first(_installed(llvm))


def _best_first(found: Iterable[Toolchain]) -> list[Toolchain]:
    return sorted(found, key=lambda toolchain: by_preference(toolchain.major))


def _installed(llvm: str | None) -> Iterator[Toolchain]:
    """Yield each installation of :func:`discover` as it is found."""
    named = llvm or os.environ.get("NESTOR_LLVM")
    if named:
        clang = _clang_of(_named(named))
        toolchain = _probe(clang) if clang else None
        if toolchain is None:
            raise ToolchainError(f"'{named}' is no LLVM installation: {INSTALL_HINT}.")
        yield toolchain
        return
    on_path = [shutil.which(f"clang-{MAIN_RELEASE}"), shutil.which("clang")]
    installed = sorted(Path("/usr/lib").glob("llvm-*/bin/clang"), reverse=True)
    found: set[Path] = set()
    every = [*(Path(path) for path in on_path if path), *installed]
    for clang in dict.fromkeys(path.resolve() for path in every):  # links start one compiler once
        toolchain = _probe(clang)
        if toolchain and toolchain.prefix not in found:
            found.add(toolchain.prefix)
            yield toolchain


def find(llvm: str | None = None) -> Toolchain:
    """Return the toolchain to use.

    :raises ToolchainError: if there is none that the plugin supports.
    """
    candidates: list[Toolchain] = []
    for toolchain in _installed(llvm):
        if toolchain.major == MAIN_RELEASE:
            return toolchain  # preferred to all others, which need not be started
        candidates.append(toolchain)
    candidates = _best_first(candidates)
    for toolchain in candidates:
        if support(toolchain.major) != "refused":
            return toolchain
    if candidates:
        versions = ", ".join(t.version for t in candidates)
        raise ToolchainError(f"LLVM {versions} is refused, since {_RELEASES}: {INSTALL_HINT}.")
    raise ToolchainError(f"No LLVM was found: {INSTALL_HINT}.")


def _named(text: str) -> Path:
    """Return the path that a user has written, with ``~`` and ``~user`` replaced.

    A number, such as 19, stands for ``clang-19``.

    :raises ToolchainError: if there is no such user.
    """
    if text.isdecimal() and not Path(text).exists():
        return Path(f"clang-{text}")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ToolchainError(f"'{text}' names the home folder of nobody: write a path.") from None


def binaries(prefix: Path) -> list[Path]:
    """Return the files that make a clang what it is: itself and the LLVM libraries beside it."""
    libraries = [*prefix.glob("lib/libLLVM.so*"), *prefix.glob("lib/libclang-cpp.so*")]
    files = {path.resolve() for path in [prefix / "bin" / "clang", *libraries]}
    return sorted(path for path in files if path.is_file())


def looked_for(llvm: str | None = None) -> list[Path]:
    """Return the files, present or not, at which :func:`find` looks for a compiler first.

    As long as none of them appears, goes or changes, it finds the same one.
    """
    named = llvm or os.environ.get("NESTOR_LLVM")
    if named:
        return _clangs_of(_named(named))
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [Path(f) / name for name in (f"clang-{MAIN_RELEASE}", "clang") for f in folders]


@functools.cache
def capabilities(toolchain: Toolchain) -> Capabilities:
    """Probe what ``toolchain`` can do (starts clang once)."""
    include = toolchain.prefix / "include" / "llvm"
    options = _hidden_options(toolchain.clang)
    return Capabilities(
        support=support(toolchain.major),
        lacks=missing(toolchain.major),
        headers=any((include / f"{folder}/PassPlugin.h").is_file() for folder in _PLUGIN_HEADERS)
        and (toolchain.prefix / "lib/cmake/llvm/LLVMConfig.cmake").is_file(),
        linker=toolchain.lld.exists(),
        opt=toolchain.opt.exists(),
        channels=tuple(sorted(set(_CHANNEL.findall(options)))),
    )


def _clang_of(path: Path) -> Path | None:
    """Return the clang that ``path`` (prefix, bin folder or compiler) stands for."""
    for candidate in _clangs_of(path):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _clangs_of(path: Path) -> list[Path]:
    on_path = shutil.which(path.name) if path.name == str(path) else None
    return [path / "bin" / "clang", path / "clang", path, *([Path(on_path)] if on_path else [])]


def _probe(clang: Path) -> Toolchain | None:
    """Return the toolchain of ``clang``, or None if it does not say that it is one."""
    real = clang.resolve()
    try:
        spoken = subprocess.run(
            [real, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"clang version (\d+\.\d+\.\d+)", spoken)
    prefix = real.parent.parent
    if version is None or not (prefix / "bin" / "clang").exists():
        return None
    return Toolchain(prefix=prefix, version=version[1], build_id=_identity(prefix))


def _hidden_options(clang: Path) -> str:
    """Return LLVM's own option list as clang prints it; empty if it does not."""
    nothing = ["-x", "c", "-c", os.devnull, "-o", os.devnull]
    command = [str(clang), "-mllvm", "--help-list-hidden", *nothing]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _identity(prefix: Path) -> str:
    """Hash the build ids of clang and of the LLVM libraries beside it."""
    digest = hashlib.sha256()
    for path in binaries(prefix):
        digest.update(path.name.encode() + b"\0" + _build_id(path))
    return digest.hexdigest()


def _build_id(path: Path) -> bytes:
    """Return the GNU build id of an ELF64 file, or the SHA-256 of a file that has none."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            return hashlib.sha256(data).digest()
        (offset,) = struct.unpack_from("<Q", data, 32)
        entry_size, count = struct.unpack_from("<HH", data, 54)
        for index in range(count):
            kind, _, start, _, _, size = struct.unpack_from(
                "<IIQQQQ", data, offset + index * entry_size
            )
            if kind != 4:  # PT_NOTE
                continue
            end = start + size
            while start + 12 <= end:
                name_size, desc_size, note = struct.unpack_from("<III", data, start)
                name = data[start + 12 : start + 12 + name_size]
                desc = start + 12 + (name_size + 3 & ~3)
                if note == 3 and name == b"GNU\0":  # NT_GNU_BUILD_ID
                    return data[desc : desc + desc_size]
                start = desc + (desc_size + 3 & ~3)
        return hashlib.sha256(data).digest()
