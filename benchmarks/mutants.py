"""Do the tests notice when an update rule is changed? Mutants of the learners, caught or not.

    python -m benchmarks.mutants --json benchmarks/results/mutants.json

For each mutant (:mod:`benchmarks.mutation`) the tests of its file (:data:`FILES`) run in a process
of their own, which sees the changed module. A mutant is *caught* if a test fails, or if they take
too long. Anything else that goes wrong ends the run with an error, and so do tests that fail
without a mutant, before or after the run: nothing is caught by a test that always fails. Mutants
run in the order of a hash, so that those of a run that ends early are a random sample. Results are
kept as they come (``--kept``) and used again for the same tests. Nothing is compiled.
"""

import argparse
import datetime
import gc
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import record
from benchmarks.mutation import EQUIVALENT, ROOT, Mutant, mutants_of, named_mutants, unchanged
from nestor.files import write_atomically

TESTS: Final = ROOT / "tests" / "learn"
UPDATES: Final = tuple(sorted(path.stem for path in TESTS.glob("test_update_*.py")))
FILES: Final = {
    "algorithms/reinforce.py": ("test_update_reinforce", "test_update_shared"),
    "algorithms/ppo.py": ("test_update_ppo", "test_update_shared"),
    "algorithms/dqn.py": ("test_update_dqn", "test_update_shared"),
    "algorithms/cloning.py": ("test_update_cloning",),
    "algorithms/best_of.py": ("test_update_best_of",),
    "algorithms/ars.py": ("test_blackbox",),
    "algorithms/cma_es.py": ("test_blackbox",),
    "algorithms/es.py": ("test_blackbox",),
    "algorithms/distil.py": ("test_rounds", "test_distil"),
    "gradient/policy_gradient.py": (
        "test_update_reinforce",
        "test_update_ppo",
        "test_update_shared",
    ),
    "gradient/optimiser.py": ("test_gradient",),
    "gradient/descent.py": ("test_gradient", *UPDATES),
    "gradient/imitation.py": ("test_gradient",),
    "gradient/novelty.py": ("test_gradient",),
    "gradient/memory.py": ("test_gradient",),
    "blackbox/candidates.py": ("test_blackbox",),
    "batch.py": ("test_gradient", "test_credit"),
    "credit.py": ("test_credit",),
}
"""The files that are changed, with the files of tests that are to notice."""

PLUGINS: Final = ("cacheprovider", "xdist", "typeguard", "hypothesispytest", "unraisableexception")
"""Plugins of pytest that these tests do not use: they take longer than most of the tests."""

Row = dict[str, Any]
"""What is kept of a mutant: file, line, code, change and whether it was caught."""


def _caught(process: int, status: int, mutant: Mutant) -> bool:
    """Return whether a test failed.

    :raises SystemExit: if the tests neither passed nor failed, such as for an import error.
    """
    code = os.waitstatus_to_exitcode(status)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(
            f"The tests of {mutant.file} did not run on '{mutant.change}' in line {mutant.line}"
            f" (exit code {code} of process {process})."
        )
    return code == pytest.ExitCode.TESTS_FAILED


def judged(
    mutants: Iterable[Mutant], jobs: int, seconds: float
) -> Iterator[tuple[Mutant, bool, float]]:
    """Yield each mutant with whether the tests caught it and the seconds that took.

    :param jobs: tests that run at the same time.
    :param seconds: limit of one mutant.
    """
    waiting, running = iter(mutants), dict[int, tuple[Mutant, float]]()
    try:
        while True:
            while len(running) < jobs and (mutant := next(waiting, None)) is not None:
                running[_start(mutant)] = mutant, time.monotonic()
            if not running:
                return
            for process, (mutant, begun) in list(running.items()):
                done, status = os.waitpid(process, os.WNOHANG)
                took = time.monotonic() - begun
                if done:
                    del running[process]
                    yield mutant, _caught(process, status, mutant), took
                elif took > seconds:
                    _end(process)
                    del running[process]
                    yield mutant, True, took
            time.sleep(0.01)
    finally:
        for process in running:
            _end(process)


def _end(process: int) -> None:
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _start(mutant: Mutant) -> int:
    """Run the tests of a mutant in a process group of its own; return its id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        _load(mutant)
        names = [str(TESTS / f"{name}.py") for name in FILES[mutant.file]]
        without = [f"-pno:{name}" for name in PLUGINS]
        code = int(pytest.main(["-x", "-q", *without, *names]))
    finally:
        os._exit(code)


def _load(mutant: Mutant) -> None:
    """Have the changed module imported in place of its own."""
    changed = "nestor.learn." + mutant.file.removesuffix(".py").replace("/", ".")
    for name in [name for name in sys.modules if name.startswith(("nestor.learn", "tests.learn"))]:
        del sys.modules[name]

    class Loader(importlib.abc.Loader):
        def exec_module(self, module: types.ModuleType) -> None:
            exec(compile(mutant.source, changed, "exec"), vars(module))

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(
            self, fullname: str, path: Sequence[str] | None, target: object = None
        ) -> importlib.machinery.ModuleSpec | None:
            is_changed = fullname == changed
            return importlib.machinery.ModuleSpec(fullname, Loader()) if is_changed else None

    sys.meta_path.insert(0, Finder())


def _import_once() -> None:
    """Import what the tests need besides the learners: the processes of the mutants inherit it."""
    torch.set_num_threads(1)
    for name in ("cma", "lightgbm", "tests.conftest", "nestor.learn.learners"):
        importlib.import_module(name)
    parameters = torch.zeros(1, requires_grad=True)
    parameters.sum().backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam([parameters]).step()  # its first step imports a thousand modules
    gc.freeze()  # the processes collect only their own objects


def _require_passing_tests(files: Sequence[str], jobs: int, seconds: float) -> None:
    """Run the tests of each file on the file as it is.

    :raises SystemExit: if a test fails, takes too long or cannot be run.
    """
    for mutant, failed, _took in judged(map(unchanged, files), jobs, seconds):
        if failed:
            raise SystemExit(f"The tests of {mutant.file} fail without any mutant.")


def _digest_of_tests() -> str:
    digest = hashlib.sha256()
    for path in sorted(TESTS.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _kept(path: Path, tests: str) -> dict[str, Row]:
    """Return the results that were found with the same tests, by the mutant's key."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["key"]: row for row in map(json.loads, lines) if row["tests"] == tests}


def _counts(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Return how many mutants were caught, and how many there are, of each file."""
    caught = Counter(row["file"] for row in rows if row["caught"])
    every = Counter(row["file"] for row in rows)
    return {file: (caught[file], every[file]) for file in FILES if every[file]}


def _content(rows: Sequence[Row], named: Sequence[Row], possible: int) -> dict[str, Any]:
    """Return the text of the result file.

    :param possible: how many mutants there are that are not equivalent.
    """
    caught = sum(row["caught"] for row in rows)
    interval = stats.binomtest(caught, len(rows)).proportion_ci(0.95, "wilson")
    return {
        "about": "Changes of the update rules that the tests of learners notice.",
        "command": record.command(sys.argv[1:]),
        "date": datetime.date.today().isoformat(),
        "mutants": len(rows),
        "caught": caught,
        "of": possible,
        "caught_pct": round(100 * caught / len(rows), 1),
        "wilson_95_pct": [round(100 * float(bound), 1) for bound in (interval.low, interval.high)],
        "caught_by_time": sum(row["late"] for row in rows),
        "files": _counts(rows),
        "survived": [_shown(row) for row in rows if not row["caught"]],
        "named": {row["change"]: row["caught"] for row in named},
        "equivalent": [
            {"file": file, "code": code, "change": change, "reason": reason}
            for (file, code, change), reason in EQUIVALENT.items()
        ],
    }


def _shown(row: Row) -> Row:
    return {name: row[name] for name in ("file", "line", "code", "change")}


def _print(content: dict[str, Any]) -> None:
    for row in content["survived"]:
        print(f"survived  {row['file']}:{row['line']}  {row['change']}:  {row['code']}")
    for name, caught in content["named"].items():
        print(f"{'caught' if caught else 'SURVIVED'}  {name}")
    print(f"{'file':28} {'mutants':>8} {'caught':>8} {'':>6}")
    every = content["caught"], content["mutants"]
    for file, (caught, count) in {**content["files"], "all": every}.items():
        print(f"{file:28} {count:8} {caught:8} {100 * caught / count:5.1f}%")
    low, high = content["wilson_95_pct"]
    print(f"{content['mutants']} of {content['of']} mutants; 95 % interval: {low} to {high} %")


def main() -> None:
    """Run every mutant that has no result yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--kept", type=Path, default=Path("mutants.jsonl"), help="results so far")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=90.0, help="limit of one mutant")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin none after this time")
    parser.add_argument("files", nargs="*", help="files of nestor.learn (default: all)")
    options = parser.parse_args()
    ends, files = time.monotonic() + 60 * options.minutes, options.files or list(FILES)
    _import_once()
    _require_passing_tests(files, options.jobs, options.seconds)
    every = sorted((m for file in files for m in mutants_of(file)), key=lambda mutant: mutant.key)
    listed = {(mutant.file, mutant.code, mutant.change) for mutant in every}
    if stale := [key for key in EQUIVALENT if key[0] in files and key not in listed]:
        raise SystemExit(f"There are no such mutants, listed as equivalent: {stale}")
    real = [mutant for mutant in every if mutant.equivalent is None]
    named = [mutant for mutant in named_mutants() if mutant.file in files]
    tests = _digest_of_tests()
    results = _kept(options.kept, tests)
    todo = (m for m in [*named, *real] if m.key not in results and time.monotonic() < ends)
    for mutant, caught, took in judged(todo, options.jobs, options.seconds):
        row = {"file": mutant.file, "line": mutant.line, "code": mutant.code}
        row |= {"change": mutant.change, "caught": caught, "late": took > options.seconds}
        results[mutant.key] = row | {"key": mutant.key, "tests": tests}
        with options.kept.open("a") as file:
            file.write(json.dumps(results[mutant.key]) + "\n")
    _require_passing_tests(files, options.jobs, options.seconds)
    if tests != _digest_of_tests():
        raise SystemExit("The tests were changed during the run.")
    rows = [results[mutant.key] for mutant in real if mutant.key in results]
    rows.sort(key=lambda row: (list(FILES).index(row["file"]), row["line"]))
    content = _content(rows, [results[m.key] for m in named if m.key in results], len(real))
    _print(content)
    if options.json is not None:
        write_atomically(options.json, json.dumps(content, indent=1) + "\n")
    if not all(content["named"].values()):
        raise SystemExit("A fault that has a name is not noticed.")


if __name__ == "__main__":
    main()
