"""Programs linked from compiled modules and tested, each program once."""

import hashlib
import json
from pathlib import Path
from typing import Final

from nestor.bisect.check import Check, Verdict
from nestor.bisect.compiled import Modules
from nestor.build.linking import link
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.files import write_atomically
from nestor.problem.problem import Pool
from nestor.temporary import temporary_folder

JOURNAL: Final = "verdicts.json"
"""The end of the name of the file, in the folder of a search, that makes it resumable."""


class Trials:
    """Links programs and asks the command about them.

    Verdicts are kept in ``folder`` by the bytes of the program, so the same search goes on from
    there.
    """

    def __init__(
        self, pool: Pool, program: Program, mode: LinkMode, check: Check, folder: Path
    ) -> None:
        """Read what an earlier search with the same command has found."""
        self.tests = 0
        self._pool = pool
        self._program = program
        self._mode: LinkMode = mode
        self._check = check
        self._file = folder / f"{check.digest[:16]}-{JOURNAL}"
        self._verdicts = _read(self._file)

    def verdict(self, modules: Modules, *, again: bool = False) -> Verdict:
        """Return what the command says of the program with these modules.

        A program that does not link is bad: a function is gone that something needs.

        :param again: run the command also if it has run on the same program before.
        :raises BisectError: if the command cannot be run.
        """
        objects = {name: str(modules[name].object) for name in self._program.modules}
        with temporary_folder("bisect") as text:
            binary = Path(text) / self._program.name.rpartition("/")[2]
            paths = {name: self._pool.objects.path(digest) for name, digest in objects.items()}
            linked = link(
                self._pool.plugin.toolchain,
                self._pool.corpus,
                self._program,
                paths,
                mode=self._mode,
                out=binary,
                limits=self._pool.limits,
            )
            if linked.measure is None:
                self.tests += 1
                return Verdict.BAD
            digest = hashlib.sha256(binary.read_bytes()).hexdigest()
            if again or digest not in self._verdicts:
                self.tests += 1
                found = self._check.verdict(binary)
                if again:
                    return found
                self._verdicts[digest] = found
                kept = {program: verdict.value for program, verdict in self._verdicts.items()}
                write_atomically(self._file, json.dumps(kept, indent=0))
        return self._verdicts[digest]


def _read(file: Path) -> dict[str, Verdict]:
    """Return the verdicts of a file; none if there is no sound one."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(program): Verdict(verdict) for program, verdict in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}
