"""Blocks that have no throughput to predict: which, and what is said of them."""

import json

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.cost.baselines.bound import BoundModel
from nestor.cost.isa.refusals import refusal
from nestor.cost.predict.answers import answers

REFUSED = {
    "0fa2": "cpuid traps to the hypervisor",
    "0f09": "wbinvd may be used by the kernel only",
    "480fc7f0": "rdrand waits for",
    "480fc7f8": "rdseed waits for",
    "f390": "pause waits for",
    "c3": "ret may leave the block",
    "eb00": "jmp may leave the block",
    "7400": "je may leave the block",
    "e800000000": "call may leave the block",
    "0f05": "syscall may leave the block",
    "cc": "int3 may leave the block",
    "0f0b": "ud2 raises an exception",
    "fa": "cli may be used by the kernel only",
    "ec": "in may be used by the kernel only",
    "0f30": "wrmsr may be used by the kernel only",
    "0faef8": "",  # sfence
    "0faef0": "",  # mfence, which labels of zen5 have
    "0f31": "",  # rdtsc, the same
    "4801d8": "",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_no_repeated_block_measures_is_refused_with_its_reason(code: str) -> None:
    expected = REFUSED[code]
    for block in (bytes.fromhex(code), bytes.fromhex(f"4801d8{code}")):
        assert refusal(block).startswith(expected) if expected else refusal(block) == ""


@pytest.mark.parametrize("model", ["shipped", "bound"])
def test_any_model_gives_no_answer_and_one_sentence(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["costmodel", "predict", "--model", model]
    assert main([*words, "c3", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["blocks"]
    assert (found["cycles"], found["low"], found["high"]) == (None, None, None)
    assert found["reason"] == "ret may leave the block, which ends before it"
    assert main([*words, "c3", "4801d8"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "no answer: ret may leave the block, which ends before it" in text


def test_a_function_leaves_out_what_has_no_answer_and_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["costmodel", "predict", "--list-blocks", "--json", "--assembly"]
    assert main([*words, "addq %rbx, %rax; jne 1f; cpuid; 1: imulq %rbx, %rax"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["functions"]
    costs = [block["cycles"] for block in found["block_list"]]
    assert costs[1] is None
    assert found["failed"] == 1
    assert found["cycles"] == pytest.approx(costs[0] + costs[2])
    assert found["reasons"] == ["cpuid traps to the hypervisor of a virtual machine"]


def test_a_function_without_any_answer_has_no_sum(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["costmodel", "predict", "--assembly", "cpuid"]
    assert main([*words, "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["functions"]
    assert (found["cycles"], found["low"], found["high"]) == (None, None, None)
    assert main(words) == 1
    assert "0.00" not in capsys.readouterr().out


def test_assembly_that_only_ends_a_block_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costmodel", "predict", "--assembly", "ret"]) == 1
    assert "returns, which end a block" in " ".join(capsys.readouterr().err.split())


def test_the_answers_of_a_baseline_are_screened() -> None:
    found = answers(BoundModel(), [bytes.fromhex("4801d8"), bytes.fromhex("0fa2"), b"\x06"])
    np.testing.assert_array_equal(np.isnan(found.cycles), [False, True, True])
    assert list(found.refused) == [1]
