"""From the linker line of a build to the inputs of a program.

The line is the one clang's driver plans with ``-nostdlib``: what the driver would add itself
(start files, the C library) is missing from it, and the driver adds it again at a relink.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nestor.compiler.options import is_safe_link_option
from nestor.corpus.archive import ArchiveError, is_archive, members
from nestor.corpus.capture.journal import Journal
from nestor.files import ReadError

Token = tuple[str, str]
"""``("object", key)``, ``("foreign", sha256)`` or ``("option", driver option)``."""

# Linker options followed by one value, whose value must not be taken for an input.
_PAIRS = frozenset(
    {
        "-m", "-o", "-L", "-dynamic-linker", "--dynamic-linker", "-rpath", "--rpath",
        "-rpath-link", "--rpath-link", "-soname", "--soname", "-h", "-T", "--script", "-u",
        "--undefined", "-e", "--entry", "--version-script", "-Map", "--dynamic-list", "-plugin",
        "-plugin-opt", "-y", "-Y", "-z", "--defsym", "--wrap", "--sysroot", "-init", "-fini",
    }
)  # fmt: skip
# What a relink chooses itself, or what says nothing about the code.
_IGNORED = (
    "-L", "--hash-style", "--build-id", "--eh-frame-hdr", "--gc-sections", "--no-gc-sections",
    "--print-gc-sections", "--icf", "-O", "-s", "-S", "--strip-", "-pie", "-static",
    "--no-dynamic-linker", "-X", "--fatal-warnings", "--no-undefined", "--color-diagnostics",
    "--warn-", "--no-warn-", "--sort-", "-t", "--verbose", "--no-pie", "-no-pie",
)  # fmt: skip
_PAIRS_IGNORED = frozenset(
    ["-m", "-o", "-L", "-dynamic-linker", "--dynamic-linker", "-soname", "--soname", "-h"]
)
# Long options that the driver writes with one dash.
_ONE_DASH = frozenset({"-export-dynamic", "-no-export-dynamic"})
# What a driver starts and ends every link with; libtool names them, for libraries of C++.
_START_FILES = re.compile(r"[SMgr]?crt[1in]\.o|crt(begin|end)[ST]?\.o")
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/lib32/")


class LinkLineError(Exception):
    """The link cannot be repeated without the source tree; the text says why."""


class LinkLine:
    """The inputs of one link. ``tokens`` may be replayed; ``dropped`` counts options left out.

    ``temporaries`` maps the names of temporary objects (a compilation inside the link command) to
    their object keys; ``source`` is the source tree, whose libraries are taken apart. With
    ``shared`` its shared libraries stay what they are, and the program is linked with them. Raises
    :class:`LinkLineError` for a link that a program cannot describe.
    """

    def __init__(
        self,
        line: Sequence[str],
        journal: Journal,
        temporaries: Mapping[str, str],
        source: Path,
        *,
        shared: bool = False,
    ) -> None:
        self.tokens: list[Token] = []
        self.dropped = 0
        self._journal = journal
        self._temporary = temporaries
        self._source = source
        self._keeps_shared = shared
        self._folders = _search_folders(line)
        self._whole = False
        index = 1
        while index < len(line):
            word = line[index]
            index += 1
            if word in _PAIRS and index < len(line):
                self._pair(word, line[index])
                index += 1
            elif word.startswith("-l"):
                self._library(word[2:])
            elif word.startswith("-"):
                self._option(word)
            else:
                self._file(word)

    def _pair(self, word: str, value: str) -> None:
        if word == "-z" and is_safe_link_option(f"-Wl,-z,{value}"):
            self.tokens.append(("option", f"-Wl,-z,{value}"))
        elif word not in _PAIRS_IGNORED:
            self.dropped += 1

    def _option(self, word: str) -> None:
        if word in ("--whole-archive", "--no-whole-archive"):
            self._whole = word == "--whole-archive"
            return  # Archives become their members, so the option itself has nothing to say.
        option = f"-Wl,{'-' if word in _ONE_DASH else ''}{word}"
        if not word.startswith(_IGNORED) and is_safe_link_option(option):
            self.tokens.append(("option", option))
        elif not word.startswith(_IGNORED):
            self.dropped += 1

    def _library(self, name: str) -> None:
        """Take a library of the source tree apart; leave one of the system to the linker."""
        wanted = [name[1:]] if name.startswith(":") else [f"lib{name}.so", f"lib{name}.a"]
        for folder in self._folders:
            found = [folder / file for file in wanted if (folder / file).exists()]
            if not found:
                continue
            if self._is_system(found[0]):
                break
            # A program needs the code itself: prefer the archive beside a shared library.
            self._file(str(found[0 if self._keeps_shared else -1]))
            return
        option = f"-l{name}"
        if is_safe_link_option(option):
            self.tokens.append(("option", option))
        else:
            self.dropped += 1

    def _file(self, name: str) -> None:
        if name in self._temporary:
            self.tokens.append(("object", self._temporary[name]))
            return
        path = Path(name)
        if self._is_system(path) and path.suffix in (".so", ".a"):
            self.tokens.append(("option", f"-l:{path.name}"))
            return
        if self._is_system(path) and _START_FILES.fullmatch(path.name):
            return  # The driver adds its own at a relink.
        try:
            with path.open("rb") as file:
                start = file.read(20)
        except OSError as error:
            raise LinkLineError(
                f"the object {path.name} is gone: what the link command assembles itself is not "
                "captured, so assemble it by a command of its own"
            ) from error
        if is_archive(start):
            self._archive(path)
        elif start[:4] == b"\x7fELF":
            if start[16] == 3 and not self._keeps_shared:  # e_type ET_DYN
                self._shared(path)
                return
            self._object(path.read_bytes())
        elif start[:4] == b"BC\xc0\xde":
            self._object(path.read_bytes())
        else:
            self.dropped += 1  # A linker script.

    def _shared(self, path: Path) -> None:
        """Take the archive beside a shared library, where libtool leaves it, for its code."""
        archive = path.with_name(f"{path.name.partition('.so')[0]}.a")
        if not archive.is_file():
            raise LinkLineError(
                f"{path} is a shared library of the source tree; build static ones "
                "(--disable-shared, -DBUILD_SHARED_LIBS=OFF, --default-library=static)"
            )
        self._archive(archive)

    def _is_system(self, path: Path) -> bool:
        real = path.resolve()
        return str(real).startswith(_SYSTEM) and not real.is_relative_to(self._source)

    def _archive(self, path: Path) -> None:
        if not self._whole:
            self.tokens.append(("option", "-Wl,--start-lib"))
        try:
            for _, content in members(path):
                self._object(content)
        except ArchiveError as error:
            raise LinkLineError(f"{path} {error}") from error
        except ReadError as error:
            raise LinkLineError(str(error)) from error
        if not self._whole:
            self.tokens.append(("option", "-Wl,--end-lib"))

    def _object(self, content: bytes) -> None:
        key = hashlib.sha256(content).hexdigest()
        if self._journal.has_compile(key):
            self.tokens.append(("object", key))
        elif content[:4] == b"\x7fELF":
            self.tokens.append(("foreign", self._journal.add_foreign(content)))
        else:
            raise LinkLineError("an input is neither a module nor an ELF object")


def _search_folders(line: Sequence[str]) -> list[Path]:
    """Return the folders of ``-L``, in order."""
    folders = []
    for index, word in enumerate(line):
        if word == "-L" and index + 1 < len(line):
            folders.append(Path(line[index + 1]))
        elif word.startswith("-L") and len(word) > 2:
            folders.append(Path(word[2:]))
    return folders
