"""Inside lld: nothing changes under the default, a policy decides, and mistakes are said."""

from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.lto import LtoKind
from nestor.rollout.lto import LtoRequest, lto_link, prelink
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool

KINDS: tuple[LtoKind, ...] = ("full", "thin")


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_gives_the_stock_program(pool: Pool, kind: LtoKind, tmp_path: Path) -> None:
    (program,) = pool.corpus.programs
    objects = prelink(pool, [program], kind)
    stock = LtoRequest(program, kind, keep=tmp_path / "stock")
    ways = {
        "stock": stock,
        "default": replace(stock, policy="default", keep=tmp_path / "default"),
        "log": replace(stock, policy="default", log=True, keep=tmp_path / "log"),
    }
    done = {name: lto_link(pool, request, objects) for name, request in ways.items()}
    assert [link.failure for link in done.values()] == [None, None, None]
    made = {(tmp_path / name).read_bytes() for name in ways}
    assert len(made) == 1, "the plugin with the default policy changes nothing"
    decisions = sum(len(log) for log in done["log"].trajectories.values())
    assert decisions > 0
    assert (len(done["log"].trajectories) > 1) == (kind == "thin"), "a log for each back end"


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_decides_the_same_with_a_log(pool: Pool, kind: LtoKind, tmp_path: Path) -> None:
    (program,) = pool.corpus.programs
    objects = prelink(pool, [program], kind)
    made = set()
    for name in ("never", "threshold:40"):
        policy = policy_file(name).argument
        used = LtoRequest(program, kind, policy=policy, keep=tmp_path / "used")
        links = [lto_link(pool, used, objects)]
        links.append(lto_link(pool, replace(used, log=True, keep=tmp_path / "logged"), objects))
        assert [link.failure for link in links] == [None, None]
        assert (tmp_path / "used").read_bytes() == (tmp_path / "logged").read_bytes()
        made.add((tmp_path / "used").read_bytes())
    assert len(made) == 2, "each policy makes a program of its own"


def test_functions_add_up_to_the_code(pool: Pool) -> None:
    (program,) = pool.corpus.programs
    objects = prelink(pool, [program], "full")
    link = lto_link(pool, LtoRequest(program, policy="default", log=True), objects)
    assert link.measure is not None
    named = {name for log in link.trajectories.values() for name in log.names.values()}
    assert {"main", "_Z5heavyRKSt6vectorIiSaIiEEi"} <= named & set(link.functions) | named
    accounted = sum(link.functions.values())
    assert 0.5 * link.measure.text < accounted <= link.measure.loadable
    plain = {function.name: function.size for function in link.measure.functions}
    tables = {name: size - plain[name] for name, size in link.functions.items()}
    assert tables["main"] > 0, "main catches, so it has an exception table"


@pytest.mark.parametrize("kind", KINDS)
def test_mistakes_are_said(pool: Pool, kind: LtoKind, tmp_path: Path) -> None:
    (program,) = pool.corpus.programs
    objects = prelink(pool, [program], kind)
    broken = tmp_path / "broken.safetensors"
    broken.write_text("no policy")
    overrides = tmp_path / "overrides"
    overrides.write_text("nestor-overrides 1\nsite 12 perhaps\n")
    for request, words in (
        (LtoRequest(program, kind, policy=broken), "cannot use the policy"),
        (LtoRequest(program, kind, policy=tmp_path / "none"), "cannot use the policy"),
        (LtoRequest(program, kind, policy="default", overrides=overrides), "line 2"),
    ):
        failure = lto_link(pool, request, objects).failure
        assert failure is not None and words in failure, failure


def test_a_module_that_does_not_compile_is_named(pool: Pool) -> None:
    (program,) = pool.corpus.programs
    module = pool.corpus.module(program.modules[0])
    pool.corpus.bitcode(module).write_bytes(b"no bitcode")
    spoilt = replace(module, digest="0" * 64)
    object.__setattr__(
        pool, "corpus", replace(pool.corpus, modules=(spoilt, *pool.corpus.modules[1:]))
    )
    objects = prelink(pool, [program], "full")
    link = lto_link(pool, LtoRequest(program), objects)
    assert link.failure == f"not linked: {module.name} was not compiled for LTO"


def test_what_each_back_end_takes(pool: Pool) -> None:
    (program,) = pool.corpus.programs
    back_ends: dict[LtoKind, int] = {"full": 1, "thin": 3}
    for kind, expected in back_ends.items():
        objects = prelink(pool, [program], kind)
        link = lto_link(pool, LtoRequest(program, kind, policy="default", log=True), objects)
        assert link.failure is None and link.measure is not None
        assert len(link.units) == expected
        assert set(link.trajectories) <= set(link.units)
        assert 0.4 * link.measure.text < sum(link.units.values()) < link.measure.loadable
