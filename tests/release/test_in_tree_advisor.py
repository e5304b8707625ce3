"""LLVM's own advisor with a released model makes the objects of the plugin with the policy file."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import NamedPolicy
from nestor.policy.network import LogNormalisation, build, initial_layers
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.release.forms import release_in_tree
from nestor.release.in_tree import features_of_llvm

HERE = Path(__file__).parent
MODULES = 12

pytestmark = pytest.mark.corpus


def policy_of_all_features(features: tuple[str, ...]) -> NamedPolicy:
    """Return a network that reads everything that LLVM computes, and inlines about half."""
    count = len(features)
    normalisation = LogNormalisation(np.full(count, 1.0), np.full(count, 0.3))
    layers = initial_layers((count, 16, 1), np.random.default_rng(4))
    return NamedPolicy.of(
        build(features, "decision", normalisation, layers, problem="inlining-size")
    )


def test_objects_are_equal(plugin: Plugin, tiny_corpus: Corpus, tmp_path: Path) -> None:
    toolchain = plugin.toolchain
    if toolchain.major != 22:
        pytest.skip("the test's own plugin is written for LLVM 22")
    policy = policy_of_all_features(features_of_llvm(toolchain))
    release_in_tree(policy, "llvm-header", tmp_path, toolchain)
    advisor, file = tmp_path / "advisor.so", tmp_path / "policy.safetensors"
    file.write_bytes(policy.data)
    words: list[str | Path] = [
        toolchain.clangxx,
        "-std=c++17",
        "-O2",
        "-DNDEBUG",
        "-fPIC",
        "-shared",
        "-fno-rtti",
    ]
    include: list[str | Path] = ["-I", tmp_path, "-isystem", toolchain.prefix / "include"]
    subprocess.run([*words, *include, HERE / "InTreeAdvisor.cpp", "-o", advisor], check=True)
    different = 0
    for module in tiny_corpus.modules[:: max(1, len(tiny_corpus.modules) // MODULES)]:
        objects = []
        for flags in (
            [],
            plugin_flags(plugin, file),
            [f"-fpass-plugin={advisor}"],
        ):
            result = tmp_path / "module.o"
            command = compile_command(
                toolchain, module.options, tiny_corpus.bitcode(module), result, flags
            )
            subprocess.run(command, check=True)
            objects.append(result.read_bytes())
        stock, by_file, in_tree = objects
        assert by_file == in_tree, module.name
        different += by_file != stock
    assert different > MODULES // 2
