"""Where logs go: no module's log takes the place of another's."""

import subprocess
from pathlib import Path

import pytest

from nestor.problems.inlining_size.log import read
from tests.plugin.support import NEVER, SOURCE, Result, Workbench, random_network

LEAN = ["cost_estimate", "callee_basic_block_count", "nr_ctant_params"]


def compile_two(bench: Workbench, log: Path | str, *sources: Path) -> "Result":
    """Compile sources with one command line, and so with one -nestor-log."""
    options = [f"-nestor-policy={bench.save(NEVER)}", f"-nestor-log={log}"]
    words = [w for o in options for w in ("-Xclang", "-mllvm", "-Xclang", o)]
    load = f"-fpass-plugin={bench.plugin.path}"
    command: list[str | Path] = [bench.plugin.toolchain.clang, "-Oz", load, *words, "-c", *sources]
    return bench.run(command, bench.folder / "x.o", bench.folder)


def two_sources(bench: Workbench) -> tuple[Path, Path]:
    return bench.source(SOURCE, "one.c"), bench.source(SOURCE, "two.c")


def test_one_file_for_two_sources_is_refused(bench: Workbench) -> None:
    log = bench.folder / "x.log"
    one, two = two_sources(bench)
    done = compile_two(bench, log, one, two)
    assert done.returncode != 0
    assert f"cannot write the log '{log}': it holds the log of {one}" in done.stderr
    assert "with a folder in its place" in done.stderr
    assert len(read(log)) > 0  # that of the first, whole


def test_the_same_source_again_replaces_its_log(bench: Workbench) -> None:
    log = bench.folder / "x.log"
    one, _ = two_sources(bench)
    assert compile_two(bench, log, one).returncode == 0
    first = log.read_bytes()
    log.write_bytes(first + b"more")
    assert compile_two(bench, log, one).returncode == 0
    assert log.read_bytes() == first


def test_a_folder_gets_a_log_for_each_source(bench: Workbench) -> None:
    one, two = two_sources(bench)
    done = compile_two(bench, f"{bench.folder / 'new' / 'logs'}/", one, two)
    assert done.returncode == 0, done.stderr
    logs = sorted((bench.folder / "new" / "logs").iterdir())
    assert [log.name.rsplit(".", 2)[0] for log in logs] == ["one.c", "two.c"]
    modules = {read(log).facts["module"] for log in logs}
    assert len(modules) == 2


def test_sources_of_one_name_in_two_folders_have_two_logs(bench: Workbench) -> None:
    logs = bench.folder / "logs"
    for name in ("a", "b"):
        folder = bench.folder / name
        folder.mkdir()
        (folder / "main.c").write_text(SOURCE)
        options = ["-mllvm", "-nestor-policy=default", "-mllvm", f"-nestor-log={logs}/"]
        load = f"-fpass-plugin={bench.plugin.path}"
        command: list[str | Path] = [
            bench.plugin.toolchain.clang,
            "-Oz",
            load,
            *options,
            "-c",
            "main.c",
        ]
        subprocess.run(command, cwd=folder, check=True)
    assert len(list(logs.iterdir())) == 2


@pytest.mark.parametrize(
    ("features", "brief"), [(LEAN, True), ([*LEAN, "callee_users"], False)], ids=["brief", "all"]
)
def test_a_log_for_a_policy_has_what_it_reads(
    bench: Workbench, features: list[str], brief: bool
) -> None:
    policy = bench.save(random_network(features))
    full = bench.compile(SOURCE, "default", log=True)
    own = bench.compile(SOURCE, "default", f"-nestor-log-for={policy}", log=True)
    assert own.bytes == full.bytes
    read_features = list(own.trajectory.features)
    offered = list(full.trajectory.features)
    assert read_features == (sorted(features, key=offered.index) if brief else offered)
    columns = [*features, "inlining_default", "answer"]
    assert (own.trajectory.columns(columns) == full.trajectory.columns(columns)).all()
    for name in ("caller", "callee"):
        assert (own.trajectory.decisions[name] == full.trajectory.decisions[name]).all()
    assert own.trajectory.facts == full.trajectory.facts


def test_a_log_for_several_policies_has_what_any_of_them_reads(bench: Workbench) -> None:
    read = [LEAN[:2], LEAN[1:]]
    options = [f"-nestor-log-for={bench.save(random_network(features))}" for features in read]
    full = bench.compile(SOURCE, "default", log=True)
    own = bench.compile(SOURCE, "default", *options, log=True)
    assert sorted(own.trajectory.features) == sorted({*LEAN})
    columns = [*LEAN, "inlining_default", "answer"]
    assert (own.trajectory.columns(columns) == full.trajectory.columns(columns)).all()


def test_a_log_for_what_is_no_policy_is_refused(bench: Workbench) -> None:
    done = bench.compile(SOURCE, "default", f"-nestor-log-for={bench.folder / 'none'}", log=True)
    assert done.returncode != 0
    assert "cannot use the policy" in done.stderr


@pytest.mark.parametrize("count", [6])
def test_many_compiles_at_once_do_not_mix_one_log(bench: Workbench, count: int) -> None:
    """Whoever comes first has the file; the others are refused, and none spoils it."""
    log = bench.folder / "x.log"
    options = ["-mllvm", "-nestor-policy=default", "-mllvm", f"-nestor-log={log}"]
    load = f"-fpass-plugin={bench.plugin.path}"
    running = []
    for number in range(count):
        source = bench.source(SOURCE, f"s{number}.c")
        out = bench.folder / f"{number}.o"
        command: list[str | Path] = [
            bench.plugin.toolchain.clang,
            "-Oz",
            load,
            *options,
            "-c",
            source,
            "-o",
            out,
        ]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    ends = [(process.communicate()[1], process.returncode) for process in running]
    assert sorted(code for _, code in ends) == [0] + [1] * (count - 1)
    assert all("it holds the log of" in text for text, code in ends if code)
    assert len(read(log)) > 0
