"""The journal: what compiler wrappers have recorded, before it becomes a corpus.

One file per event, each put in place by one rename, so that any number of wrappers on any number
of hosts can write at once and a killed one leaves nothing half-done::

    .journal/compile/<object key>.json   one object file and the bitcode it came from
    .journal/link/<time>-<random>.json   one executable and its inputs
    .journal/bitcode/<sha256>.bc         pre-optimisation bitcode
    .journal/foreign/<sha256>.o          objects that no wrapper compiled
    .journal/failures/<…>.json           commands that could not be captured
    .journal/profiles/<sha256>.profdata  profiles that compilations use
    .journal/precompiled/<key>.json      the headers that a precompiled header is made of
    .journal/called                      there once a wrapper has been called

The object key is the sha256 of the object file, by which a later link finds its modules. This
module is imported by the wrapper and must stay quick to import.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from nestor.compiler.profile_option import SUFFIX
from nestor.files import ReadError, read_regular, replacing, scratch_file


class Journal:
    """The journal in the folder ``root``; nothing is created before the first event."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def compile_path(self, key: str) -> Path:
        """Return where the event of the object with this key lies."""
        return self.root / "compile" / f"{key}.json"

    def bitcode_path(self, digest: str) -> Path:
        """Return where the bitcode with this sha256 lies."""
        return self.root / "bitcode" / f"{digest}.bc"

    def foreign_path(self, digest: str) -> Path:
        """Return where the foreign object with this sha256 lies."""
        return self.root / "foreign" / f"{digest}.o"

    def has_compile(self, key: str) -> bool:
        """Tell whether the object with this key was compiled under a wrapper."""
        return self.compile_path(key).exists()

    def compile_event(self, key: str) -> dict[str, Any] | None:
        """Return the compilation that made the object with this key, None if none is recorded."""
        event: dict[str, Any] | None = self._event(self.compile_path(key))
        return event

    def scratch(self) -> AbstractContextManager[Path]:
        """Yield the path of a file to write bitcode to; it is removed afterwards if still there."""
        return scratch_file(self.root / "bitcode" / "new")

    def add_compile(self, key: str, event: dict[str, Any]) -> None:
        """Record a compilation."""
        self._write(self.compile_path(key), json.dumps(event).encode())

    def add_link(self, event: dict[str, Any]) -> None:
        """Record a link."""
        self._write(self.root / "link" / f"{_moment()}.json", json.dumps(event).encode())

    def add_bitcode(self, scratch: Path) -> str:
        """Take over the bitcode in the file ``scratch``; return its sha256."""
        digest = hashlib.sha256(scratch.read_bytes()).hexdigest()
        scratch.replace(self.bitcode_path(digest))
        return digest

    def add_foreign(self, content: bytes) -> str:
        """Keep an object file that no wrapper compiled; return its sha256."""
        return self._keep(content, self.foreign_path)

    def profile_path(self, digest: str) -> Path:
        """Return where the profile with this sha256 lies."""
        return self.root / "profiles" / f"{digest}{SUFFIX}"

    def add_profile(self, content: bytes) -> str:
        """Keep a profile that a compilation uses; return its sha256."""
        return self._keep(content, self.profile_path)

    def add_failure(self, event: dict[str, Any]) -> bool:
        """Record a failure; return whether it is the first one of this journal."""
        folder = self.root / "failures"
        first = not folder.exists()
        self._write(folder / f"{_moment()}.json", json.dumps(event).encode())
        return first

    def add_precompiled(self, file: str, headers: Sequence[str]) -> None:
        """Record that the precompiled header ``file`` is made of ``headers`` (absolute paths)."""
        self._write(self._precompiled_path(file), json.dumps({"headers": headers}).encode())

    def precompiled_headers(self, file: str) -> list[str] | None:
        """Return the headers of the precompiled header ``file``, None if none are recorded."""
        event = self._event(self._precompiled_path(file))
        return None if event is None else event["headers"]

    def _precompiled_path(self, file: str) -> Path:
        key = hashlib.sha256(os.fsencode(file)).hexdigest()
        return self.root / "precompiled" / f"{key}.json"

    def note_call(self) -> None:
        """Record that a wrapper was called for a command that may make code."""
        with contextlib.suppress(FileNotFoundError):  # No folder: nobody will ask.
            (self.root / "called").touch()

    def forget_calls(self) -> None:
        """Forget all calls, before a build."""
        (self.root / "called").unlink(missing_ok=True)

    def was_called(self) -> bool:
        """Tell whether a wrapper was called since :meth:`forget_calls`."""
        return (self.root / "called").exists()

    def compiles(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield object key and event of every compilation."""
        for path in sorted(self.root.glob("compile/*.json")):
            yield path.stem, _read(path)

    def links(self) -> Iterator[dict[str, Any]]:
        """Yield the links, oldest first."""
        for path in sorted(self.root.glob("link/*.json")):
            yield _read(path)

    def failures(self) -> Iterator[dict[str, Any]]:
        """Yield the failures, oldest first; ``time`` says when (nanoseconds)."""
        for path in sorted(self.root.glob("failures/*.json")):
            yield {**_read(path), "time": int(path.stem.partition("-")[0])}

    def _event(self, path: Path) -> Any:
        try:
            return _read(path)
        except ReadError as error:
            if error.absent:
                return None
            raise

    def _keep(self, content: bytes, place: Callable[[str], Path]) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = place(digest)
        if not path.exists():
            self._write(path, content)
        return digest

    def _write(self, path: Path, content: bytes) -> None:
        # Without waiting for the disk, unlike write_atomically: a build must not be slowed down.
        with replacing(path) as scratch:
            scratch.write_bytes(content)


def _read(path: Path) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(read_regular(path, "an event of a capture"))
    return event


def _moment() -> str:
    """Return a name that sorts by time and is unique, on several machines too."""
    return f"{time.time_ns():020d}-{os.urandom(8).hex()}"
