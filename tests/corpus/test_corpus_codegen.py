"""Codegen corpora: the same objects without the middle end, and profiles of real runs."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.compiler.invocation import compile_command
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.codegen.make import make_codegen_corpus
from nestor.corpus.model import Corpus, CorpusError, Module, Workload
from tests.conftest import module_named

if TYPE_CHECKING:
    from tests.corpus.conftest import SourceTree

COUNTS = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static long rare(long v) { return v * 7 / 3; }
__attribute__((noinline)) static long often(long v) { return v / 3 + 1; }
int main(int argc, char **argv) {
  if (argc != 2) return 3;
  long n = atol(argv[1]), s = 0;
  for (long i = 0; i < n; ++i) s += i % 10 ? often(s) : rare(s);
  printf("%ld\\n", s);
}
"""


def objects(toolchain: Toolchain, corpus: Corpus, module: Module, out: Path) -> bytes:
    command = compile_command(toolchain, module.options, corpus.bitcode(module), out)
    subprocess.run(command, check=True, capture_output=True)
    return out.read_bytes()


def text_of(toolchain: Toolchain, corpus: Corpus, module: Module) -> str:
    tool = toolchain.prefix / "bin" / "llvm-dis"
    done = subprocess.run(
        [tool, corpus.bitcode(module), "-o", "-"], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_module_of_tiny_becomes_the_same_object(
    tiny_speed_corpus: Corpus, toolchain: Toolchain, tmp_path: Path
) -> None:
    made = make_codegen_corpus(tiny_speed_corpus, tmp_path / "out", toolchain)
    assert store.load(tmp_path / "out") == made
    store.verify(made)
    assert made.is_codegen
    assert not tiny_speed_corpus.is_codegen
    assert made.level == "-O2"
    assert made.by_name.keys() == tiny_speed_corpus.by_name.keys()
    different = [
        module.name
        for module in made.modules
        if objects(toolchain, made, module, tmp_path / "made.o")
        != objects(
            toolchain, tiny_speed_corpus, tiny_speed_corpus.module(module.name), tmp_path / "o.o"
        )
    ]
    assert different == []
    assert sum(len(p.modules) for p in made.programs) > 20


def test_a_codegen_compile_runs_no_pass_of_the_middle_end(
    tiny_speed_corpus: Corpus, toolchain: Toolchain, tmp_path: Path
) -> None:
    one = replace(
        tiny_speed_corpus, modules=(module_named(tiny_speed_corpus, "lz4hc.o"),), programs=()
    )
    made = make_codegen_corpus(one, tmp_path / "out", toolchain)
    (module,) = made.modules
    command = compile_command(toolchain, module.options, made.bitcode(module), tmp_path / "x.o")
    done = subprocess.run(
        [*command, "-mllvm", "-print-changed=quiet", "-fdebug-pass-manager"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "InlinerPass" not in done.stderr
    assert "SROAPass" not in done.stderr


def with_workload(tree: "SourceTree", profile: tuple[str, ...]) -> Corpus:
    at_speed = tree.at("-O2")
    at_speed.write("counts.c", COUNTS)
    assert at_speed.cc("-c", "counts.c").returncode == 0
    assert at_speed.cc("counts.o", "-o", "counts").returncode == 0
    corpus = at_speed.finalise()
    workload = Workload(("1000",), (profile,) if profile else ())
    corpus = replace(corpus, programs=tuple(replace(p, workload=workload) for p in corpus.programs))
    store.save(corpus)
    return store.load(corpus.root)


def test_a_profile_holds_what_the_profile_run_executed(tree: "SourceTree", tmp_path: Path) -> None:
    corpus = with_workload(tree, ("70",))
    toolchain = tree.wrappers.toolchain
    made = make_codegen_corpus(corpus, tmp_path / "out", toolchain, profile=True)
    assert made.missing == ()
    assert store.load(tmp_path / "out").programs == corpus.programs
    text = text_of(toolchain, made, made.modules[0])
    counts = sorted(int(n) for n in re.findall(r'"function_entry_count", i64 (\d+)', text))
    assert counts == [1, 7, 63]
    assert '"branch_weights"' in text
    plain = make_codegen_corpus(corpus, tmp_path / "plain", toolchain)
    assert "function_entry_count" not in text_of(toolchain, plain, plain.modules[0])
    # What is in the bitcode is all that code generation needs: it is compiled as any other.
    assert objects(toolchain, made, made.modules[0], tmp_path / "a.o") != objects(
        toolchain, plain, plain.modules[0], tmp_path / "b.o"
    )


def test_a_program_without_a_profile_run_stays_without(tree: "SourceTree", tmp_path: Path) -> None:
    corpus = with_workload(tree, ())
    made = make_codegen_corpus(corpus, tmp_path / "out", tree.wrappers.toolchain, profile=True)
    assert made.missing == ()
    assert "function_entry_count" not in text_of(tree.wrappers.toolchain, made, made.modules[0])


def test_a_run_that_fails_is_named_and_leaves_no_profile(
    tree: "SourceTree", tmp_path: Path
) -> None:
    corpus = with_workload(tree, ("too", "many"))
    made = make_codegen_corpus(corpus, tmp_path / "out", tree.wrappers.toolchain, profile=True)
    (lost,) = made.missing
    assert lost.project == "demo"
    assert "counts: no profile: run failed: exit status 3" in lost.reason
    assert len(made.modules) == 1


def test_a_codegen_corpus_is_made_once_and_into_a_new_folder(
    tree: "SourceTree", tmp_path: Path
) -> None:
    corpus = with_workload(tree, ())
    toolchain = tree.wrappers.toolchain
    made = make_codegen_corpus(corpus, tmp_path / "out", toolchain)
    with pytest.raises(CorpusError, match="not empty"):
        make_codegen_corpus(corpus, tmp_path / "out", toolchain)
    with pytest.raises(CorpusError, match="is a codegen corpus already"):
        make_codegen_corpus(made, tmp_path / "again", toolchain)


def test_a_module_that_is_refused_is_left_out_with_its_programs(
    tree: "SourceTree", tmp_path: Path
) -> None:
    corpus = with_workload(tree, ())
    corpus.bitcode(corpus.modules[0]).write_bytes(b"BC no bitcode")
    made = make_codegen_corpus(corpus, tmp_path / "out", tree.wrappers.toolchain)
    assert made.modules == ()
    assert made.programs == ()
    assert made.missing[0].reason.startswith("demo/counts.o: failed:")


FOR_X86 = 'void f(void) { __asm__ volatile("cpuid" ::: "eax", "ebx", "ecx", "edx"); }\n'


def test_another_target_takes_what_does_not_depend_on_the_old_one(
    tree: "SourceTree", tmp_path: Path
) -> None:
    """Also with a profile: the programs that count are the old target's."""
    corpus = with_workload(tree, ("70",))
    toolchain, folder = tree.wrappers.toolchain, tmp_path / "arm"
    made = make_codegen_corpus(corpus, folder, toolchain, profile=True, target="aarch64-linux-gnu")
    assert store.load(folder) == made
    assert made.missing == ()
    (module,) = made.modules
    code = objects(toolchain, made, module, tmp_path / "arm.o")
    assert int.from_bytes(code[18:20], "little") == 183  # e_machine: EM_AARCH64
    text = text_of(toolchain, made, module)
    assert "x86" not in " ".join(module.options) + text
    assert re.search(r'"function_entry_count", i64 63', text)
    assert [(p.smoke, p.workload) for p in made.programs] == [((), None)]


def test_what_asks_for_the_old_target_is_left_out(tree: "SourceTree", tmp_path: Path) -> None:
    at_speed = tree.at("-O2")
    at_speed.write("good.c", "int main(void) { return 0; }\n")
    at_speed.write("bad.c", FOR_X86)
    at_speed.write("long.c", "long double g(long double x) { return x * x; }\n")
    assert at_speed.cc("-c", "good.c", "bad.c", "long.c").returncode == 0
    assert at_speed.cc("good.o", "-o", "good").returncode == 0
    assert at_speed.cc("good.o", "bad.o", "-o", "with").returncode == 0
    made = make_codegen_corpus(
        at_speed.finalise(), tmp_path / "arm", tree.wrappers.toolchain, target="aarch64-linux-gnu"
    )
    lost = sorted(missing.reason.partition(": ")[0] for missing in made.missing)
    assert [name.rpartition("/")[2] for name in lost] == ["bad.o", "long.o"]
    assert [program.name.rpartition("/")[2] for program in made.programs] == ["good"]


def test_an_unknown_target_is_refused(tree: "SourceTree", tmp_path: Path) -> None:
    corpus = with_workload(tree, ())
    with pytest.raises(CorpusError, match="does not compile for 'abacus-none'"):
        make_codegen_corpus(corpus, tmp_path / "out", tree.wrappers.toolchain, target="abacus-none")
