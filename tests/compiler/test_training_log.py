"""Logs of the plugin end with a summary; without a sound one they are no logs."""

import json

import pytest

from nestor.problem.trajectory import LogError, Trajectory
from nestor.problems.inlining_size import log
from nestor.regalloc import question_log

SOUND = {"decisions": 0, "module": "1f", "growth_cap_reached": 0, "asked_after_growth_cap": 0}


def written(*contexts: str) -> bytes:
    columns = [{"name": name, "port": 0, "type": "int64_t", "shape": [1]} for name in log.COLUMNS]
    lines = [{"features": columns}, *({"context": context} for context in contexts)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def both(data: bytes) -> list[Trajectory]:
    """Read one log as one of inlining and as one of register allocation."""
    return [log.parse(data), question_log.parse(data, "log", lambda found: log.trajectory(found))]


def test_names_and_module_are_those_of_the_last_summary() -> None:
    last = json.dumps(SOUND | {"names": {"ff": "f"}})
    for found in both(written("m.c", "nestor:summary {}", f"nestor:summary {last}")):
        assert len(found) == 0
        assert found.names == {255: "f"}
        assert found.facts["module"] == 31


@pytest.mark.parametrize(
    "summary",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps(SOUND | {"decisions": 1}),
        json.dumps(SOUND | {"module": "x"}),
        json.dumps(SOUND | {"module": 1}),
        json.dumps(SOUND | {"names": [1]}),
        json.dumps(SOUND | {"names": {"x": "f"}}),
    ],
)
def test_what_is_no_summary_is_refused(summary: str) -> None:
    data = written(f"nestor:summary {summary}")
    with pytest.raises(LogError, match="compile again"):
        log.parse(data)
    with pytest.raises(LogError, match="compile again"):
        question_log.parse(data, "log", lambda found: log.trajectory(found))
