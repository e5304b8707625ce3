"""The command line as its users meet it: through its words, its output and its exit status."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.cli.commands import COMMANDS, PASS_THROUGH
from nestor.cli.main import main
from nestor.corpus.model import Corpus
from nestor.policy import bundle
from nestor.problems.inlining_size import builtins
from tests.command import nestor
from tests.conftest import SOURCE
from tests.problems.inlining_size.sums import linear


@pytest.fixture
def never(tmp_path: Path) -> Path:
    path = tmp_path / "a policy with spaces.safetensors"
    bundle.save(builtins.constant(inline=False), path)
    return path


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS | PASS_THROUGH)
    assert "examples:" in text


OTHERS_INTERFACE = {"costmodel trace-model"}
"""Its arguments and its output are those of a program of somebody else's."""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_explains_itself_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"nestor {name}" in text
    assert "Examples:" in text
    assert ("--json" in text) == (name not in OTHERS_INTERFACE)


@pytest.mark.parametrize("name", ["clang", "clang++", "flags"])
def test_pass_through_commands_explain_themselves(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    assert f"usage: nestor {name} POLICY" in capsys.readouterr().out
    assert main([name]) == 2


@pytest.mark.parametrize("near", ["evaluate", "flags", "corpus fetch", "problem list"])
def test_unknown_command_is_wrong_usage(near: str, capsys: pytest.CaptureFixture[str]) -> None:
    typo = near[:-2] + near[-1] + near[-2]
    assert main(typo.split()) == 2
    assert f"'{typo}' is no command (is '{near}' meant?); " in capsys.readouterr().err
    assert main(["xyzzy"]) == 2
    assert "'xyzzy' is no command; 'nestor --help'" in capsys.readouterr().err


def test_an_unknown_problem_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "inlinning", "--corpus", "c", "--out", "o"]) == 1
    assert (
        "there are inlining-size, inlining-size-os, inlining-speed, regalloc-eviction"
        in " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["flags"], "is for loop-unrolling, and a build can use policies for inlining-size"),
        (
            ["evaluate", "--corpus", "CORPUS", "--policy"],
            "is for loop-unrolling, not for inlining-size",
        ),
    ],
)
def test_a_policy_for_another_problem_is_refused(
    command: list[str],
    reason: str,
    small_corpus: Corpus,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = builtins.constant(inline=False)
    other = replace(own, metadata=replace(own.metadata, problem="loop-unrolling"))
    path = tmp_path / "p.safetensors"
    bundle.save(other, path)
    words = [str(small_corpus.root) if word == "CORPUS" else word for word in command]
    assert main([*words, str(path)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert reason in said


@pytest.mark.parametrize(("words", "status"), [(["corpus"], 2), (["corpus", "--help"], 0)])
def test_a_group_lists_its_commands(
    words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == status
    assert "corpus overlap" in capsys.readouterr().out


def test_no_words_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().out


def test_doctor_json() -> None:
    done = nestor("doctor", "--json")
    assert done.returncode == 0, done.stderr
    (entry, *_others) = json.loads(done.stdout)["toolchains"]
    assert entry["version"].startswith("22.")
    assert Path(entry["clang"]).exists()
    assert entry["plugin"]["built"] is True
    assert Path(entry["plugin"]["path"]).exists()
    assert entry["identity"]["identical"] is True
    assert entry["identity"]["checked"] >= 8
    assert "inliner" in entry["capabilities"]["channels"]


def test_doctor_without_llvm(tmp_path: Path) -> None:
    done = nestor("doctor", "--llvm", str(tmp_path))
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "install LLVM 22" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "--policy", "nevr", "--corpus", "."], "nevr"),
        (["evaluate", "--policy", "never", "--corpus", "/no/such/corpus"], "/no/such/corpus"),
        (["policy", "/no/such/policy"], "/no/such/policy"),
        (["log", "/no/such/log"], "-nestor-log"),
        (["flags", "/no/such/policy"], "/no/such/policy"),
        (["clang", "/no/such/policy", "--", "-c", "x.c"], "/no/such/policy"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], said: str) -> None:
    done = nestor(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    refused = "--nestor-flags-failed=" if words[0] == "flags" else ""  # makes a compile fail
    assert done.stdout.startswith(refused) and bool(done.stdout) == bool(refused)


def test_policy_shows_what_a_linear_one_computes(tmp_path: Path) -> None:
    path = tmp_path / "sum.safetensors"
    bundle.save(linear(), path)
    said = nestor("policy", str(path)).stdout
    (line,) = [line for line in said.splitlines() if line.startswith("logit")]
    factors = json.loads(nestor("policy", str(path), "--json").stdout)["logit"]["factors"]
    assert all(f"{factor:+.3f}·l({name})" in line for name, factor in factors.items())
    assert "logit" not in nestor("policy", "never").stdout


def test_evolution_needs_a_start(small_corpus: Corpus, tmp_path: Path) -> None:
    command = ["train", "inlining-size", "--corpus", str(small_corpus.root), "--learner", "es"]
    done = nestor(*command, "--out", str(tmp_path / "run"))
    assert done.returncode == 1
    assert "--learner bc" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--learner", "bc", "--init", "shipped"], "leave out --init"),
        (["--learner", "ppo", "--trials", "trials"], "leave out --trials"),
        (["--learner", "ppo", "--init", "nevr"], "nevr"),
        (["--learner", "ppo", "--init", "distilled"], "weights of a network"),
        (["--learner", "es", "--init", "never"], "weights of a network"),
        (["--features", "cost_estimate"], "add callee_code_size"),
        (["--learner", "cma", "--features", "cost_estimate"], "add callee_code_size"),
    ],
)
def test_training_mistakes(
    small_corpus: Corpus, tmp_path: Path, words: list[str], said: str
) -> None:
    command = ["train", "inlining-size", "--corpus", str(small_corpus.root), *words]
    done = nestor(*command, "--out", str(tmp_path / "run"))
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "policy.safetensors").exists()


def test_train_then_use(small_corpus: Corpus, tmp_path: Path) -> None:
    """The whole spine on a small corpus: clone, evolve, evaluate, build, run."""
    root = str(small_corpus.root)
    bc, es = tmp_path / "bc", tmp_path / "es"
    train = ["train", "inlining-size", "--corpus", root]
    done = nestor(*train, "--out", str(bc), "--learner", "bc", "--bc.steps", "200", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agreement"] > 0.5
    evolve = [*train, "--learner", "es", "--init", str(bc / "policy.safetensors")]
    short = ["--es.steps", "2", "--es.population", "4", "--json"]
    done = nestor(*evolve, "--out", str(es), *short)
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    assert first["cost"]["failures"] == 0
    assert first["cost"]["rollouts_per_cpu_second"] > 0
    assert list((es / "curves").iterdir()), "no curves"
    again = nestor(*evolve, "--out", str(tmp_path / "again"), *short)
    assert json.loads(again.stdout)["digest"] == first["digest"], "the seed does not decide"

    policy = str(es / "policy.safetensors")
    out = tmp_path / "one"
    words = ["build", "one/one", "--corpus", root, "--policy", policy, "--out", str(out)]
    done = nestor(*words)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([out], check=False).returncode in (0, 1)


def test_flags_make_an_ordinary_build_use_the_policy(
    never: Path, toolchain_clang: str, tmp_path: Path
) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    (tmp_path / "asm.S").write_text(".globl nothing\nnothing: ret\n")
    flags = shlex.split(nestor("flags", str(never)).stdout)
    assert any(word.startswith("-fpass-plugin=") for word in flags)

    def size(*more: str) -> bytes:
        out = tmp_path / "x.o"
        command = [toolchain_clang, "-Oz", "-Werror", *more, "-c", str(tmp_path / "x.c")]
        subprocess.run([*command, "-o", str(out)], check=True)
        return out.read_bytes()

    assert size(*flags) != size()
    assert size(*flags) == size("-fno-inline-functions", *flags)
    # Assembly and links meet the same flags in every real build.
    assemble = [toolchain_clang, *flags, "-c", str(tmp_path / "asm.S"), "-o", str(tmp_path / "a.o")]
    subprocess.run(assemble, check=True)
    link = [toolchain_clang, *flags, str(tmp_path / "x.o"), "-o", str(tmp_path / "x")]
    subprocess.run(link, check=True)


@pytest.fixture
def toolchain_clang() -> str:
    from nestor.compiler.toolchain import find

    return str(find().clang)


def test_clang_is_a_drop_in(never: Path, tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    run = ["clang", str(never), "--"]
    done = nestor(*run, "-Oz", "-Werror", "x.c", "-o", "x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "x"], check=False).returncode in (0, 1)
    # Its messages and its status are the compiler's own.
    (tmp_path / "bad.c").write_text("int f(void) { return y; }")
    bad = nestor(*run, "-c", "bad.c", cwd=tmp_path)
    assert bad.returncode == 1
    assert "undeclared identifier 'y'" in bad.stderr
    version = nestor(*run, "--version", cwd=tmp_path)
    assert "clang version 22" in version.stdout


def test_clang_is_deterministic(tmp_path: Path) -> None:
    (tmp_path / "x.cpp").write_text(
        "template<class T> T f(T v){return v+1;} int g(){return f(1)+f(2);}"
    )
    objects = set()
    for name in ("a.o", "b.o"):
        words = ["clang++", "mlgo2020", "--", "-Oz", "-c", "x.cpp", "-o", name]
        assert nestor(*words, cwd=tmp_path).returncode == 0
        objects.add((tmp_path / name).read_bytes())
    assert len(objects) == 1


def test_log_shows_decisions_with_names(never: Path, tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    log = tmp_path / "x.log"
    options = ["-mllvm", f"-nestor-log={log}", "-mllvm", "-nestor-log-names"]
    nestor("clang", str(never), "--", "-Oz", "-c", "x.c", *options, cwd=tmp_path)
    done = nestor("log", str(log), "--json")
    data = json.loads(done.stdout)
    assert {"step", "walk"} <= {row["callee"] for row in data["decisions"]}
    assert all(row["answer"] is False for row in data["decisions"])
    deviations = json.loads(nestor("log", str(log), "--deviations", "--json").stdout)
    assert 0 < len(deviations["decisions"]) <= len(data["decisions"])
    log.write_bytes(log.read_bytes()[:-40])
    cut = nestor("log", str(log))
    assert cut.returncode == 1
    assert "no complete trajectory log" in cut.stderr


def test_policy_describes_itself() -> None:
    data = json.loads(nestor("policy", "mlgo2020", "--json").stdout)
    assert len(data["features"]) == 11
    assert Path(data["path"]).exists()


def test_reader_that_goes_away_is_no_error(small_corpus: Corpus) -> None:
    command = f"{shlex.quote(sys.executable)} -m nestor"
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} doctor --json | true"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        check=False,
    )
    assert "Traceback" not in done.stderr
