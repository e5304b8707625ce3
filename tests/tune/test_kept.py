"""What a search keeps is read back as it was."""

from pathlib import Path

from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild
from nestor.problem.registry import find_problem
from nestor.problems.inlining_size.search.overrides import Key
from nestor.tune.kept import KeptSearch, load, save
from nestor.tune.state import Point, State, Tried


def test_a_state_is_read_back(tmp_path: Path) -> None:
    problem = find_problem("inlining-speed")
    columns = {"profile": {"J": 9.0, "text": 3.0}}
    stock = ProgramBuild({}, "J", columns, {}, {}, {}, outputs={"profile": "ab"})
    large = (1 << 64) - 1
    state = State(
        step=3,
        overrides={Key("site-only", large): True, Key("site-only", 7): False},
        tried={large: Tried(large, 2, -1.5, None, 24.0), 1: Tried(5, 1, None), 2: Tried(0, 1, 0.0)},
        curve=(Point(0.0, 9.0, {"text": 3.0}), Point(2.5, 8.0, {"text": 4.0})),
        exhausted=True,
        written=Calls({(large, 1): 12, (1, 2): 0}, {1: 12, large: 1}),
    )
    path, identity = tmp_path / "search.json", {"seed": 1}
    save(path, identity, KeptSearch("start", stock, state), problem)
    found = load(path, identity, problem)
    assert found is not None
    assert found.state == state
    assert (found.start, found.stock.columns, found.stock.outputs) == (
        "start", columns, stock.outputs,
    )  # fmt: skip
