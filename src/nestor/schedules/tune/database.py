"""All results of all searches: one SQLite file.

A result belongs to a payload, a schedule, a choice, a processor and an LLVM version. A result of
another LLVM is *stale*: it says where to look first, but not how fast a kernel is now.
"""

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.errors import NestorError
from nestor.schedules.kernel.evaluate import Evaluation, Task
from nestor.schedules.payload.loops import loops_of
from nestor.schedules.target import host
from nestor.schedules.tune.space import row

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS results (
  payload TEXT NOT NULL, schedule TEXT NOT NULL, choice TEXT NOT NULL, cpu TEXT NOT NULL,
  llvm TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
  reason TEXT NOT NULL, least REAL, middle REAL, features TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (payload, schedule, choice, cpu, llvm))
"""


@dataclass(frozen=True)
class Key:
    """What the results of one task have in common."""

    payload: str
    """SHA-256 of the payload."""
    schedule: str
    """Name of the schedule, and SHA-256 of all that it consists of, before decisions."""
    cpu: str
    """The processor that ran it, and the words for clang."""
    llvm: str
    """The version."""


@dataclass(frozen=True)
class Result:
    """One row of the database."""

    key: Key
    kind: str
    """What the payload computes, such as ``matmul``."""
    evaluation: Evaluation
    features: Mapping[str, float]


def key_of(task: Task) -> Key:
    """Return the key of a task."""
    closure = task.library.closure(task.schedule)
    digest = hashlib.sha256("\n".join(s.text for s in closure).encode()).hexdigest()
    threads = f" {task.settings.threads} threads" if task.settings.threads > 1 else ""
    cpu = f"{host().processor} {' '.join(task.target.flags)}{threads}"
    return Key(task.payload.digest, f"{task.schedule} {digest[:16]}", cpu, task.tools.version)


class Database:
    """Results in a file; several processes may use it."""

    def __init__(self, path: Path) -> None:
        """Open a database, made if absent.

        :raises NestorError: if it is no database, or cannot be made.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as connection:
                connection.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            raise NestorError(f"{path} cannot be used as a database of results: {error}.") from None

    def add(self, task: Task, evaluation: Evaluation) -> None:
        """Keep what became of a choice; a newer result takes the place of an older one."""
        key = key_of(task)
        loops = loops_of(task.payload)
        features = row(evaluation.choice, loops, task.target)
        with self._open() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    key.payload, key.schedule, _text(evaluation.choice), key.cpu, key.llvm,
                    task.payload.name, loops.kind, evaluation.status, evaluation.reason,
                    evaluation.least, evaluation.middle, json.dumps(features), time.time(),
                ),
            )  # fmt: skip

    def find(self, key: Key, choice: Mapping[str, int]) -> Evaluation | None:
        """Return what became of a choice, with the same LLVM; None if it was never tried."""
        for result in self.results(key):
            if _text(result.evaluation.choice) == _text(choice):
                return result.evaluation
        return None

    def results(self, key: Key) -> list[Result]:
        """Return the results of a key, the fastest first, failures last."""
        found = [r for r in self._rows(key.payload) if r.key == key]
        return sorted(found, key=_seconds)

    def stale(self, key: Key) -> list[Result]:
        """Return the results that another LLVM had, the fastest first."""
        found = [
            r
            for r in self._rows(key.payload)
            if (r.key.payload, r.key.schedule.split()[0], r.key.cpu)
            == (key.payload, key.schedule.split()[0], key.cpu)
            and (r.key.llvm, r.key.schedule) != (key.llvm, key.schedule)
        ]
        return sorted(found, key=_seconds)

    def all(self) -> list[Result]:
        """Return every result."""
        return list(self._rows())

    def _rows(self, payload: str | None = None) -> Iterator[Result]:
        """Yield the results of a payload, or all."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT payload, schedule, cpu, llvm, kind, choice, status, reason, least, middle,"
                " features FROM results WHERE ?1 IS NULL OR payload = ?1"
                " ORDER BY payload, schedule, cpu, llvm, choice",
                (payload,),
            ).fetchall()
        for payload, schedule, cpu, llvm, kind, choice, status, reason, least, middle, more in rows:
            evaluation = Evaluation(json.loads(choice), status, reason, least, middle)
            yield Result(Key(payload, schedule, cpu, llvm), kind, evaluation, json.loads(more))

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=60.0)
        try:
            with connection:
                yield connection
        finally:
            connection.close()


def _text(choice: Mapping[str, int]) -> str:
    return json.dumps(dict(choice), sort_keys=True)


def _seconds(result: Result) -> float:
    least = result.evaluation.least
    return float("inf") if least is None else least
