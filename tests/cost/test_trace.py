"""Traces of blocks: of real runs under valgrind, with the command line of ml-compiler-opt."""

import io
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import lief
import numpy as np
import pytest
from iced_x86 import FlowControl

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.cost.contract import Prediction
from nestor.cost.elf import mapped
from nestor.cost.isa.decoding import raw
from nestor.cost.isa.recurrence import jumps_to_itself
from nestor.cost.predict.single_pass import pass_cycles
from nestor.cost.registry import open_model
from nestor.cost.trace import messages
from nestor.cost.trace.entries import codes, cut
from nestor.cost.trace.messages import EntryId, TraceError
from nestor.cost.trace.record import INDEX, TRACE, Recorder
from nestor.cost.trace.replay import cycles_of, instructions_of, replay
from nestor.cost.trace.riegeli import read_records, write_records
from tests.cost.abilities import needs_valgrind
from tests.cost.test_expected_cost import PROGRAM

MAP = "-fbasic-block-address-map"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Path:
    """A compiled corpus of one module, and the program linked from it."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "s.c").write_text(PROGRAM)
    description = {"modules": ["sub/module"]}
    (folder / "corpus_description.json").write_text(json.dumps(description))
    (folder / "sub").mkdir()
    for command in (
        ["-c", MAP, "s.c", "-o", "sub/module.bc.o"],
        ["-x", "none", "sub/module.bc.o", "-static", "-o", "program"],
    ):
        words = [str(toolchain.clang), "-O2", *command]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def lines(corpus: Path) -> list[bytes]:
    """What lackey prints of a run of the program."""
    words = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=lackey", "./program"]
    subprocess.run(words, cwd=corpus, check=True, capture_output=True)
    return (corpus / "lackey").read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def trace(corpus: Path, lines: list[bytes]) -> Path:
    """The trace of that run, as the command records it, in segments of 10,000 blocks."""
    folder = corpus / "trace"
    words = ["costmodel", "record-trace", str(corpus / "program"), "--out", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "nestor", *words, "--max-blocks-per-segment", "10000"],
        input=b"".join(lines), check=True, capture_output=True,
    )  # fmt: skip
    return folder


def trainer_words(corpus: Path, trace: Path) -> list[str]:
    """Return the words with which ml-compiler-opt's worker starts basic_block_trace_model."""
    return [
        f"--corpus_path={corpus / 'corpus_description.json'}",
        f"--function_index_path={trace / INDEX}",
        "--thread_count=1",
        f"--bb_trace_path={trace / TRACE}",
        "--model_type=mca",
    ]


def costs_read_by_the_trainer(output: str) -> list[float]:
    """Return the costs as that worker reads them: every line that is a number."""
    found = []
    for line in output.split("\n"):
        try:
            found.append(float(line))
        except ValueError:
            continue
    return found


def run_executable(*words: str) -> "subprocess.CompletedProcess[str]":
    """Start what pip installs as basic_block_trace_model."""
    code = "from nestor.cli.blocks.trace import entry; entry()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )


@needs_valgrind
def test_the_trainer_gets_the_instructions_that_ran(
    corpus: Path, trace: Path, lines: list[bytes]
) -> None:
    words = trainer_words(corpus, trace)
    done = run_executable(*words, "--model_type=instruction_counting")  # its extra flags come last
    assert done.returncode == 0, done.stderr
    costs = costs_read_by_the_trainer(done.stdout)
    assert len(costs) == 4  # 33,912 blocks
    binary = lief.ELF.parse(str(corpus / "program"))
    assert binary is not None
    ours = [s for s in binary.symbols if s.name in ("mix", "order", "main")]
    assert len(ours) == 3
    places = {a for s in ours for a in range(s.value, s.value + s.size)}
    ran = [int(line[3:].split(b",")[0], 16) for line in lines if line.startswith(b"I  ")]
    executed = sum(address in places for address in ran)
    # Padding that is executed on the way to a loop is in no block.
    assert sum(costs) == pytest.approx(executed, rel=1e-3)
    assert sum(costs) > 100_000


@needs_valgrind
def test_the_trainer_gets_cycles_of_each_model(corpus: Path, trace: Path) -> None:
    words = trainer_words(corpus, trace)
    sums = {}
    for name in ("mca", "bound"):
        done = run_executable(*words, f"--model_type={name}")
        assert done.returncode == 0, done.stderr
        sums[name] = sum(costs_read_by_the_trainer(done.stdout))
    indices = messages.parse_function_index(next(read_records(trace / INDEX)))
    code = codes(mapped.read(corpus / "sub" / "module.bc.o"), indices)
    segments = list(map(messages.parse_segment, read_records(trace / TRACE)))
    model = open_model("bound")
    expected = 0.0
    for segment in segments:
        for entry, runs in segment.runs.items():
            piece = b"".join(_without_jumps(code[entry]))
            if piece:
                found = pass_cycles(model, [piece])
                loops = jumps_to_itself(code[entry])
                expected += runs * float((found.repeated if loops else found.single)[0])
    assert sums["bound"] == pytest.approx(expected)
    assert sums["mca"] > 0.2 * expected


def _without_jumps(code: bytes) -> list[bytes]:
    parts, start = [], 0
    for instruction in raw(code):
        end = start + instruction.len
        if instruction.flow_control == 0:
            parts.append(code[start:end])
        start = end
    return parts


@needs_valgrind
def test_a_program_costs_what_its_objects_cost(
    corpus: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["costmodel", "trace-model", "--model-type", "instruction_counting"]
    words += ["--bb-trace-path", str(trace / TRACE), "--function-index-path", str(trace / INDEX)]
    assert main([*words, "--binary-path", str(corpus / "program")]) == 0
    of_program = capsys.readouterr().out
    description = str(corpus / "corpus_description.json")
    assert main([*words, "--corpus-path", description]) == 0
    assert capsys.readouterr().out == of_program != ""
    assert main(words) == 1
    assert "--corpus-path or --binary-path" in capsys.readouterr().err


@needs_valgrind
def test_code_without_a_block_that_ran_is_refused_or_counted(
    corpus: Path, trace: Path, tmp_path: Path, toolchain: Toolchain,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "s.c").write_text(PROGRAM.replace("mix", "other"))
    words = [str(toolchain.clang), "-O2", "-c", MAP, "s.c", "-o", "module.bc.o"]
    subprocess.run(words, cwd=tmp_path, check=True)
    (tmp_path / "corpus_description.json").write_text('{"modules": ["module"]}')
    options = ["--model-type", "instruction_counting", "--bb-trace-path", str(trace / TRACE)]
    options += ["--function-index-path", str(trace / INDEX)]
    options += ["--corpus-path", str(tmp_path / "corpus_description.json")]
    assert main(["costmodel", "trace-model", *options]) == 1
    assert "of the function 'mix', which the code does not have" in capsys.readouterr().err
    assert main(["costmodel", "trace-model", *options, "--skip-missing"]) == 0
    said = capsys.readouterr()
    assert 0 < sum(costs_read_by_the_trainer(said.out)) < 50_000
    assert "of 33,912 blocks that ran are not in the code" in said.err
    # The blocks that the modules lack may come from a file instead.
    indices = messages.parse_function_index(next(read_records(trace / INDEX)))
    code = codes(mapped.read(corpus / "sub" / "module.bc.o"), indices)
    kept = {entry: text for entry, text in code.items() if entry.function == indices["mix"]}
    write_records(tmp_path / "kept", [messages.serialized_record(kept)])
    serialized = ["--serialized-bbs-path", str(tmp_path / "kept")]
    assert main(["costmodel", "trace-model", *options, *serialized]) == 0
    assert sum(costs_read_by_the_trainer(capsys.readouterr().out)) > 100_000


def test_entries_are_where_llvm_says_that_calls_return(corpus: Path, toolchain: Toolchain) -> None:
    path = corpus / "sub" / "module.bc.o"
    readobj = toolchain.prefix / "bin" / "llvm-readobj"
    said = subprocess.run(
        [readobj, "--bb-addr-map", str(path)], check=True, capture_output=True, text=True
    ).stdout
    expected = []
    for text in said.split("ID: ")[1:]:
        size = int(text.partition("Size: ")[2].split()[0], 16)
        _, found, rest = text.partition("Callsite End Offsets: [")
        ends = [int(number) for number in rest.partition("]")[0].split(",")] if found else []
        expected.append((int(text.split()[0]), [end for end in ends if end < size]))
    own = []
    for function in mapped.read(path):
        for block in function.blocks:
            starts, at = [], 0
            for code in cut(block.code):
                at += len(code)
                *_, last = raw(code)
                if last.flow_control == FlowControl.CALL and at < len(block.code):
                    starts.append(at)
            own.append((block.identity, starts))
    assert own == expected
    assert sum(len(starts) for _, starts in own) >= 2  # calloc, mix, qsort, printf


def test_code_outside_of_the_program_costs_as_it_was_recorded() -> None:
    message = messages._class("MbbTrace")()
    part = message.shared_object_traces.add(trace_id=7)
    part.instruction_data.extend(bytes.fromhex(x) for x in ("4801d8", "e800000000", "480fafc3"))
    message.mbbs.extend([messages._class("MachineBbId")(basic_block_id=7).SerializeToString()] * 3)
    segment = messages.parse_segment(message.SerializeToString())
    assert segment.runs == {EntryId(None, 7, 0): 3}
    (counted,) = replay([segment], {}, {}, instructions_of)
    assert (counted.cost, counted.runs, counted.missing) == (9.0, 3, 0)
    model = open_model("bound")
    (priced,) = replay([segment], {}, {}, cycles_of(model))
    alone = pass_cycles(model, [bytes.fromhex("4801d8"), bytes.fromhex("480fafc3")])
    assert priced.cost == pytest.approx(3 * float(alone.single.sum()))


class _Nothing:
    """A model without an answer."""

    def predict(self, blocks: list[bytes]) -> Prediction:
        empty = np.full(len(blocks), np.nan)
        return Prediction(empty, empty, empty)


def test_entries_without_an_answer_are_counted() -> None:
    entry = EntryId(0, 2, 0)
    segment = messages.parse_segment(
        messages.segment_record([messages.identifier_record(entry)] * 5)
    )
    (found,) = replay([segment], {entry: b"\x48\x01\xd8\xc3"}, {"f": 0}, cycles_of(_Nothing()))  # type: ignore[arg-type]
    assert (found.cost, found.runs, found.unanswered) == (0.0, 5, 5)


def test_a_program_at_no_fixed_address_is_refused(corpus: Path, toolchain: Toolchain) -> None:
    words = [str(toolchain.clang), "-pie", "-fPIE", MAP, "s.c", "-o", "moving"]
    subprocess.run(words, cwd=corpus, check=True)
    with pytest.raises(TraceError, match=r"link it with -no-pie"):
        Recorder(corpus / "moving")


def test_what_is_no_trace_of_the_program_is_refused(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"I  0,4\nnoise\n")))
    words = ["costmodel", "record-trace", str(corpus / "program"), "--out", str(tmp_path / "out")]
    assert main(words) == 1
    assert "No block of" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_segments_follow_each_other_without_loss(corpus: Path) -> None:
    recorder = Recorder(corpus / "program")
    keys = list(recorder._entries)[:7]
    lines = [b"I  " + key + b",4\n" for key in keys] * 3
    records = list(recorder.segments(lines, 4))
    assert [sum(messages.parse_segment(r).runs.values()) for r in records] == [4, 4, 4, 4, 4, 1]
    assert recorder.blocks == 21
    assert all(len(a) > 0 for pair in pairwise(records) for a in pair)
