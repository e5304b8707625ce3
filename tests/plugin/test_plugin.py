"""The plugin in the real clang and opt, on small real sources."""

import subprocess

import numpy as np
import pytest

from nestor.policy.spec import Policy
from nestor.problems.inlining_size import builtins
from nestor.problems.inlining_size.log import COLUMNS, read
from tests.plugin.support import (
    ALWAYS,
    CALLEE_DELETED,
    CXX_SOURCE,
    INLINED,
    NEVER,
    NOT_TRIED,
    RECURSIVE,
    SOURCE,
    Workbench,
    random_network,
)

LEAN = ["cost_estimate", "callee_basic_block_count", "nr_ctant_params"]
"""Features that the release advisor can compute."""
COUNTS = ["callee_users", "caller_users", "edge_count", "node_count"]
"""Features that only LLVM's own advisor keeps."""
# Small logits, so that sampling decides something.
EVEN = builtins.threshold(0)


def policies() -> dict[str, Policy]:
    """One of each sort."""
    mlgo = builtins.BUILTINS.resolve("mlgo2020")
    assert mlgo is not None
    return {
        "always": ALWAYS,
        "never": NEVER,
        "threshold": builtins.threshold(25),
        "lean": random_network(LEAN, 3),
        "default as feature": random_network([*LEAN, "inlining_default"], 4),
        "deviation": random_network(LEAN, 5, answers="deviation"),
        "counts": random_network([*LEAN, *COUNTS], 6),
        "mlgo2020": mlgo,
    }


SOURCES = {
    "c": (SOURCE, "unit.c", ["-Oz"]),
    "c -O2 -g": (SOURCE, "unit.c", ["-O2", "-g"]),
    "c++": (CXX_SOURCE, "unit.cpp", ["-Oz"]),
    "c++ -O2 -g": (CXX_SOURCE, "unit.cpp", ["-O2", "-g"]),
    "a call in itself": (RECURSIVE, "unit.c", ["-O2"]),
    "no function": ("int x = 3;", "unit.c", ["-Oz"]),
    "no decision": ("int f(int a) { return a; }", "unit.c", ["-Oz"]),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_without_options_the_compiler_is_the_stock_compiler(bench: Workbench, kind: str) -> None:
    source, name, flags = SOURCES[kind]
    stock = bench.compile(source, name=name, flags=flags).bytes
    assert bench.compile(source, "", name=name, flags=flags).bytes == stock
    assert bench.compile(source, "default", name=name, flags=flags).bytes == stock
    assert bench.compile(source, "default", log=True, name=name, flags=flags).bytes == stock


@pytest.mark.parametrize("name", policies())
def test_release_and_development_advisors_agree(bench: Workbench, name: str) -> None:
    policy = policies()[name]
    for source, unit, flags in SOURCES.values():
        for options in ([], ["-nestor-seed=7"]):
            lean = bench.compile(source, policy, *options, name=unit, flags=flags)
            full = bench.compile(source, policy, *options, log=True, name=unit, flags=flags)
            assert lean.bytes == full.bytes


def test_policies_matter(bench: Workbench) -> None:
    """Else the tests above compare nothing."""
    objects = [bench.compile(SOURCE, policy).bytes for policy in (ALWAYS, NEVER, "default")]
    assert len(set(objects)) == 3


def test_greedy_and_sampled_runs_are_deterministic(bench: Workbench) -> None:
    for options in ([], ["-nestor-seed=1"], ["-nestor-seed=2", "-nestor-temperature=0.3"]):
        once, again = (bench.compile(SOURCE, EVEN, *options, log=True) for _ in range(2))
        assert once.bytes == again.bytes
        assert once.log.read_bytes() == again.log.read_bytes()


def test_another_seed_samples_something_else(bench: Workbench) -> None:
    runs = [
        bench.compile(SOURCE, EVEN, f"-nestor-seed={seed}", log=True).decisions
        for seed in (1, 2, 3, 4)
    ]
    assert len({tuple(sorted(run.items())) for run in runs}) > 1


def test_a_seed_of_zero_and_the_largest_seed_sample(bench: Workbench) -> None:
    for seed in (0, 2**64 - 1):
        result = bench.compile(SOURCE, EVEN, f"-nestor-seed={seed}", log=True)
        # Greedily, EVEN answers every site by its cost alone.
        records = result.trajectory.decisions
        greedy = (records["logit"] > 0).astype(np.int64)
        assert (records["answer"] != greedy).any()


def _mix(z: int) -> int:
    mask = 2**64 - 1
    z = (z + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    return z ^ z >> 31


@pytest.mark.parametrize("of", ["site", "callee"])
def test_sampling_is_the_documented_function_of_the_seed(bench: Workbench, of: str) -> None:
    together = ("-nestor-seed-callees",) if of == "callee" else ()
    for temperature in (1.0, 0.5):
        options = ("-nestor-seed=11", f"-nestor-temperature={temperature}", *together)
        records = bench.compile(SOURCE, EVEN, *options, log=True).trajectory.decisions
        for row in records:
            number = (_mix(_mix(11) ^ (int(row[of]) & 2**64 - 1)) >> 11) * 2.0**-53
            probability = 1 / (1 + np.exp(-row["logit"] / temperature))
            assert bool(row["answer"]) == (number < probability)
            taken = probability if row["answer"] else 1 - probability
            assert row["log_probability"] == pytest.approx(np.log(taken))


def test_sampling_does_not_depend_on_order(bench: Workbench) -> None:
    """Functions in another order are asked about in another order; each answer stays."""
    functions = [f"int f{i}(int v) {{ return h(v) * {i}; }}" for i in range(12)]
    helper = "extern int sink(int);\nstatic int h(int v) { return sink(v) + sink(v + 1); }\n"
    runs = [
        bench.compile(helper + "\n".join(order), EVEN, "-nestor-seed=5", log=True)
        for order in (functions, functions[::-1])
    ]
    first, second = (run.trajectory.decisions["site"].tolist() for run in runs)
    assert first != second
    assert runs[0].decisions == runs[1].decisions
    assert len(set(runs[0].decisions.values())) == 2


def test_an_override_flips_exactly_its_decision(bench: Workbench) -> None:
    before = bench.compile(SOURCE, "default", log=True)
    callers = before.trajectory.decisions["caller"].tolist()
    for (site, decision), caller in zip(before.decisions.items(), callers, strict=True):
        answer = "keep" if decision else "inline"
        line = f"site-only {site & 2**64 - 1:016x} {answer}\n"
        result = bench.compile(SOURCE, "default", log=True, overrides=f"nestor-overrides 1\n{line}")
        after = result.decisions
        assert after[site] == 1 - decision
        records = result.trajectory.decisions
        assert records["overridden"].sum() == 1
        assert records["site"][records["overridden"] == 1].tolist() == [site]
        # Sites in other functions keep their keys, and those that share a key their meaning.
        rows = {int(row["site"]): row for row in before.trajectory.decisions}
        for row in records:
            if int(row["site"]) in rows:
                assert row["callee"] == rows[int(row["site"])]["callee"]
                assert row["caller"] == rows[int(row["site"])]["caller"]
        others = {s for s, c in zip(before.decisions, callers, strict=True) if c != caller}
        upstream = {int(r["site"]) for r in before.trajectory.decisions if r["callee"] == caller}
        if decision == 0 and not upstream:
            assert others <= after.keys()


def test_overrides_work_without_a_log(bench: Workbench) -> None:
    decisions = bench.compile(SOURCE, "default", log=True).decisions
    flipped = {site: 1 - decision for site, decision in list(decisions.items())[::2]}
    lean = bench.compile(SOURCE, "default", overrides=flipped).bytes
    assert lean == bench.compile(SOURCE, "default", log=True, overrides=flipped).bytes
    assert lean != bench.compile(SOURCE).bytes


def test_overrides_stand_above_policy_and_sample(bench: Workbench) -> None:
    decisions = bench.compile(SOURCE, NEVER, log=True).decisions
    kept = bench.compile(SOURCE, ALWAYS, "-nestor-seed=1", log=True, overrides=decisions)
    assert set(kept.decisions.values()) == {0}
    assert kept.bytes == bench.compile(SOURCE, NEVER).bytes


def test_site_keys_survive_an_unrelated_edit(bench: Workbench) -> None:
    edited = (
        "int extra(int);\nstatic int other(int a) { return extra(a) + extra(2 * a); }\n"
        "int before(int a) { return other(a) + other(a + 1); }\n"
        + SOURCE.replace("int fourth(int v) {", "int fourth(int v) { extra(v); sink(v);")
        + "int after(int a) { return small(a) + first(a); }\n"
    )
    for policy in (NEVER, EVEN):
        old = bench.compile(SOURCE, policy, log=True).trajectory.decisions
        new = bench.compile(edited, policy, log=True).trajectory.decisions
        assert len(new) > len(old)
        names = ("site", "caller", "callee")
        assert {tuple(row[n] for n in names) for row in old} <= {
            tuple(row[n] for n in names) for row in new
        }


@pytest.mark.parametrize("kind", SOURCES)
def test_site_keys_are_unique(bench: Workbench, kind: str) -> None:
    source, name, flags = SOURCES[kind]
    for policy in (ALWAYS, NEVER, "default"):
        result = bench.compile(source, policy, log=True, name=name, flags=flags)
        assert len(result.decisions) == len(result.trajectory)


def test_local_functions_of_other_files_have_other_keys(bench: Workbench) -> None:
    one = bench.compile(SOURCE, NEVER, log=True, name="one.c").trajectory.decisions
    two = bench.compile(SOURCE, NEVER, log=True, name="two.c").trajectory.decisions
    assert not set(one["site"].tolist()) & set(two["site"].tolist())
    # Global callers are the same functions.
    assert set(one["caller"].tolist()) & set(two["caller"].tolist())


def test_log_fields(bench: Workbench) -> None:
    policy = random_network([*LEAN, "inlining_default"], 9, answers="deviation")
    result = bench.compile(SOURCE, policy, "-nestor-log-names", log=True)
    trajectory = result.trajectory
    records = trajectory.decisions
    assert records.dtype.names is not None
    assert records.dtype.names[-len(COLUMNS) :] == COLUMNS
    assert {"cost_estimate", "callee_users"} <= set(trajectory.features)
    assert not trajectory.facts["growth_cap_reached"]
    assert not trajectory.facts["asked_after_growth_cap"]
    names = trajectory.names
    mask = 2**64 - 1
    callees = {names[int(r["callee"]) & mask] for r in records}
    callers = {names[int(r["caller"]) & mask] for r in records}
    assert callees == {"small", "middle", "nested"}
    assert {"first", "second", "third", "fourth"} <= callers
    logits = policy.logits(trajectory.rows(policy.features))
    assert (logits == records["logit"]).all()
    default = records["inlining_default"].astype(bool)
    assert (policy.answer(trajectory.rows(policy.features), default)).tolist() == records[
        "answer"
    ].astype(bool).tolist()
    assert set(records["inlining_default"].tolist()) == {0, 1}


def test_the_logged_default_is_the_stock_answer(bench: Workbench) -> None:
    records = bench.compile(SOURCE, "default", log=True).trajectory.decisions
    assert (records["inlining_default"] == records["answer"]).all()


def test_effects(bench: Workbench) -> None:
    source = """
    extern int sink(int);
    static int once(int v) { return sink(v) * sink(v + 1); }
    static int twice(int v) { return sink(v) - sink(v + 2); }
    int one(int v) { return once(v); }
    int two(int v) { return twice(v) ^ twice(v + 5); }
    """
    trajectory = bench.compile(source, ALWAYS, "-nestor-log-names", log=True).trajectory
    effects: dict[str, list[int]] = {}
    for row in trajectory.decisions:
        name = trajectory.names[int(row["callee"]) & (2**64 - 1)]
        effects.setdefault(name, []).append(int(row["effect"]))
    assert effects == {"once": [CALLEE_DELETED], "twice": [INLINED, CALLEE_DELETED]}
    refused = bench.compile(source, NEVER, log=True).trajectory.decisions
    assert refused["effect"].tolist() == [NOT_TRIED] * 3


GROWING = (
    "extern int sink(int);\n"
    "int big(int v) { "
    + "".join(f"sink(v + {i}); " for i in range(40))
    + "return v; }\n"
    + "".join(f"int f{i}(int v) {{ return big(v) + big(v + {i}); }}\n" for i in range(8))
)


def test_the_growth_cap_is_logged(bench: Workbench) -> None:
    capped = bench.compile(GROWING, ALWAYS, log=True)
    assert capped.trajectory.facts["growth_cap_reached"]
    assert capped.trajectory.facts["asked_after_growth_cap"] > 0
    total = len(capped.trajectory) + capped.trajectory.facts["asked_after_growth_cap"]
    free = bench.compile(
        GROWING, ALWAYS, log=True, mllvm=["-ml-advisor-size-increase-threshold=100"]
    )
    assert not free.trajectory.facts["growth_cap_reached"]
    assert len(free.trajectory) == total == 16
    # The release advisor stops at the same call, and its log says the same.
    assert bench.compile(GROWING, ALWAYS).bytes == capped.bytes != free.bytes
    lean = bench.save(random_network(("cost_estimate",)))
    released = bench.compile(GROWING, ALWAYS, f"-nestor-log-for={lean}", log=True)
    assert released.bytes == capped.bytes
    assert released.trajectory.features == ("cost_estimate",)
    assert released.trajectory.facts == capped.trajectory.facts


def test_opt_takes_the_plugin_too(bench: Workbench) -> None:
    source = bench.source(SOURCE)
    module, toolchain = bench.folder / "unit.bc", bench.plugin.toolchain
    emit = ["-Oz", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-c"]
    subprocess.run([toolchain.clang, *emit, source, "-o", module], check=True)

    def opt(*options: str) -> bytes:
        out, log = bench.folder / "opt.bc", bench.folder / "opt.log"
        words = [toolchain.opt, "-passes=default<Oz>", *options, module, "-o", out]
        result = bench.run([str(word) for word in words], out, log)
        assert result.returncode == 0, result.stderr
        return result.bytes

    load = f"--load-pass-plugin={bench.plugin.path}"
    log = bench.folder / "opt.log"
    stock = opt()
    assert opt(load) == stock
    assert opt(load, "-nestor-policy=default") == stock
    never = f"-nestor-policy={bench.save(NEVER)}"
    assert opt(load, never) != stock
    opt(load, never, f"-nestor-log={log}")
    clang = bench.compile(SOURCE, NEVER, log=True).trajectory.decisions
    assert read(log).decisions["site"].tolist() == clang["site"].tolist()


@pytest.mark.parametrize("flags", [["-flto"], ["-flto=thin"], ["-O1"], ["-O3"], ["-O0"]])
@pytest.mark.parametrize("policy", ["default", ALWAYS], ids=["default", "always"])
def test_other_pipelines(bench: Workbench, flags: list[str], policy: Policy | str) -> None:
    flags = ["-Oz", *flags]
    stock = bench.compile(CXX_SOURCE, name="unit.cpp", flags=flags).bytes
    lean = bench.compile(CXX_SOURCE, policy, name="unit.cpp", flags=flags).bytes
    full = bench.compile(CXX_SOURCE, policy, log=True, name="unit.cpp", flags=flags)
    # Bitcode also keeps the metadata that carries the site keys.
    assert full.bytes == lean or any("-flto" in flag for flag in flags)
    if policy == "default":
        assert lean == stock


def test_attributes_are_obeyed(bench: Workbench) -> None:
    source = """
    extern int sink(int);
    __attribute__((always_inline)) static inline int must(int v) { return sink(v) + sink(v); }
    __attribute__((noinline)) static int mustnt(int v) { return v + 1; }
    __attribute__((weak)) int replaceable(int v) { return v + 2; }
    static int may(int v) { return sink(v); }
    int self(int v) { return v ? self(v - 1) * sink(v) : 1; }
    int f(int v) { return must(v) + mustnt(v) + replaceable(v) + may(v) + self(v); }
    """
    for policy in (ALWAYS, NEVER):
        lean = bench.compile(source, policy)
        full = bench.compile(source, policy, "-nestor-log-names", log=True)
        assert lean.bytes == full.bytes
        trajectory = full.trajectory
        asked = {trajectory.names[int(r["callee"]) & (2**64 - 1)] for r in trajectory.decisions}
        assert asked == {"may"}  # nobody is asked about the others
        # The first was inlined everywhere and is gone.
        assert (b"\0must\0" in lean.bytes, b"\0mustnt\0" in lean.bytes) == (False, True)
