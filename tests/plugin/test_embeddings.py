"""Embeddings of functions as features: what they count, both advisors, and hostile vocabularies."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import read
from tests.plugin.support import CXX_SOURCE, NEVER, SOURCE, Workbench, random_forest

OPCODES, TYPES = ("Ret", "Load", "Store", "Call", "Invoke"), ("IntegerTy", "PointerTy")
ARGUMENTS = ("Function", "Constant", "Variable", "ICMP_slt")


def vocabulary(folder: Path, vectors: dict[str, list[int]]) -> Path:
    path = folder / "vocabulary.txt"
    rows = [f"entity {name} {' '.join(map(str, v))}\n" for name, v in vectors.items()]
    size = len(next(iter(vectors.values())))
    path.write_text(f"nestor-vocabulary 1\ndimension {size}\n" + "".join(rows))
    return path


def identity(folder: Path) -> Path:
    """The vocabulary under which embeddings are counts of some entities."""
    known = (*OPCODES, *TYPES, *ARGUMENTS)
    return vocabulary(folder, {n: [int(n == m) for m in known] for n in known})


def embedded(log: Trajectory, end: str, entity: str) -> np.ndarray:
    place = (*OPCODES, *TYPES, *ARGUMENTS).index(entity)
    return np.asarray(log.decisions[f"{end}_ir2vec_{place}"])


@pytest.mark.parametrize(("source", "name"), [(SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_they_count_what_the_other_features_count(bench: Workbench, source: str, name: str) -> None:
    option = f"-nestor-vocabulary={identity(bench.folder)}"
    log = bench.compile(source, "default", option, log=True, name=name).trajectory
    assert len(log) > 3
    for feature, entity in (("returns", "Ret"), ("loads", "Load"), ("stores", "Store")):
        assert (embedded(log, "callee", entity) == log.decisions[f"callee_{feature}"]).all()
    calls = embedded(log, "caller", "Call") + embedded(log, "caller", "Invoke")
    assert (calls >= log.decisions["caller_calls"]).all()


def test_without_a_vocabulary_there_are_none(bench: Workbench) -> None:
    log = bench.compile(SOURCE, "default", log=True).trajectory
    assert not any("ir2vec" in name for name in log.features)


def test_a_vocabulary_changes_no_object(bench: Workbench) -> None:
    option = f"-nestor-vocabulary={identity(bench.folder)}"
    assert bench.compile(SOURCE, "default", option).bytes == bench.compile(SOURCE).bytes


def test_both_advisors_read_the_same(bench: Workbench) -> None:
    option = f"-nestor-vocabulary={identity(bench.folder)}"
    log = bench.compile(CXX_SOURCE, NEVER, option, log=True, name="unit.cpp").trajectory
    features = tuple(name for name in log.features if "ir2vec" in name)
    answers = set()
    for seed in range(4):
        forest = random_forest(features, log.rows(features), seed)
        bare = bench.compile(CXX_SOURCE, forest, option, name="unit.cpp")
        logged = bench.compile(CXX_SOURCE, forest, option, log=True, name="unit.cpp")
        assert bare.bytes == logged.bytes
        answers.add(logged.bytes)
    assert len(answers) > 1


def test_they_are_those_of_llvm(bench: Workbench) -> None:
    tool = shutil.which("llvm-ir2vec", path=str(bench.plugin.toolchain.clang.parent))
    if tool is None:
        pytest.skip("this LLVM came without llvm-ir2vec")
    names = subprocess.run(
        [tool, "entities"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    known = [line.split("\t")[0] for line in names]
    vectors = {n: [(7 * i) % 13 - 6, (5 * i) % 11, i] for i, n in enumerate(known)}
    first, last = known.index("FloatTy"), known.index("Function")
    floats = {n: list(map(float, v)) for n, v in vectors.items()}
    sections = {"Opcodes": known[:first], "Types": known[first:last], "Arguments": known[last:]}
    (bench.folder / "vocabulary.json").write_text(
        json.dumps({key: {n: floats[n] for n in part} for key, part in sections.items()})
    )
    text = """
    extern int sink(int);
    int callee(int v, double d) { for (int i = 0; i < v; ++i) if (d > i) sink(i); return v == 3; }
    int caller(int v) { return callee(v, v * 1.5) + sink(v); }
    """
    toolchain, module = bench.plugin.toolchain, bench.folder / "module.bc"
    keep = ("-Oz", "-mllvm", "-inline-threshold=-10000", "-emit-llvm", "-c")
    bench.run([toolchain.clang, *keep, bench.source(text), "-o", module], module, module)
    weights = [f"--ir2vec-{part}-weight=1" for part in ("opc", "type", "arg")]
    path = f"--ir2vec-vocab-path={bench.folder / 'vocabulary.json'}"
    said = subprocess.run(
        [tool, "embeddings", "--level=func", path, *weights, str(module)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    words = said.replace("[", " ").replace("]", " ").split()
    theirs = {words[i + 1]: [float(w) for w in words[i + 2 : i + 5]]
              for i, word in enumerate(words) if word == "Function:"}  # fmt: skip
    log = bench.folder / "log"
    options = ["-nestor-policy=default", f"-nestor-log={log}", "-nestor-log-names",
               f"-nestor-vocabulary={vocabulary(bench.folder, vectors)}"]  # fmt: skip
    load = f"--load-pass-plugin={bench.plugin.path}"
    out = bench.folder / "out.bc"
    bench.run([toolchain.opt, load, *options, "-passes=default<Oz>", module, "-o", out], out, log)
    trajectory = read(log)
    assert len(trajectory) == 1
    for end in ("caller", "callee"):
        ours = trajectory.rows([f"{end}_ir2vec_{k}" for k in range(3)])[0].tolist()
        assert ours == theirs[end]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the first line is not"),
        ("nestor-vocabulary 2\n", "line 1"),
        ("nestor-vocabulary 1\n", "there is no line 'dimension"),
        ("nestor-vocabulary 1\ndimension 0\n", "line 2"),
        ("nestor-vocabulary 1\ndimension 513\n", "line 2"),
        ("nestor-vocabulary 1\ndimension 1\ndimension 1\n", "line 3"),
        ("nestor-vocabulary 1\nentity Ret 1\n", "line 2"),
        ("nestor-vocabulary 1\ndimension 2\nentity Ret 1\n", "line 3"),
        ("nestor-vocabulary 1\ndimension 1\nentity Nothing 1\n", "no entity 'Nothing'"),
        ("nestor-vocabulary 1\ndimension 1\nentity Ret 1\nentity Ret 1\n", "given twice"),
        ("nestor-vocabulary 1\ndimension 1\nentity Ret 1.5\n", "whole numbers"),
        ("nestor-vocabulary 1\ndimension 1\nentity Ret 1048577\n", "whole numbers"),
        ("nestor-vocabulary 1\ndimension 1\nword\n", "line 3"),
    ],
)
def test_a_bad_vocabulary_is_refused(bench: Workbench, text: str, why: str) -> None:
    path = bench.folder / "vocabulary.txt"
    path.write_text(text)
    result = bench.compile(SOURCE, "default", f"-nestor-vocabulary={path}")
    assert result.returncode == 1
    assert "nestor: cannot use the vocabulary" in result.stderr and why in result.stderr
