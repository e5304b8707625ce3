"""Does Python, asked over LLVM's own channel, allocate registers as the plugin does?

    python -m benchmarks.regalloc_agreement BENCH --work FOLDER [--sample N] [--jobs N]
        [--json benchmarks/results/regalloc.json]

Under each of several eviction policies that do not read the stock heuristic's choice, which the
channel does not send, the objects of both must be equal, bit for bit. One policy is a network that
reads all features that both have. Each module is optimised once, at -O2; then its code is generated
twice for each policy. The plugin keeps some questions for the stock heuristic: those whose
candidates lack its choice, and those of a function where a policy evicts in circles. The channel
knows neither, so the modules where that happened are counted on their own. A run that was stopped
goes on from the records in FOLDER.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.regalloc_policies import EVICTION, eviction_policy
from benchmarks.regalloc_sweep import (
    LIMITS,
    Journal,
    arguments,
    conclude,
    optimise,
    sample,
    say,
    sweep,
    unequal,
)
from nestor.compiler.channel import compile_over_channel
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.files import sha256_of
from nestor.policy import bundle, network
from nestor.policy.network import LogNormalisation, initial_layers
from nestor.policy.spec import Policy
from nestor.problems.regalloc_eviction.channel import channel_options, policy_answer
from nestor.problems.regalloc_eviction.question import LLVM_22
from nestor.regalloc import allocation_log
from nestor.regalloc.plugin_flags import as_flags
from nestor.temporary import temporary_folder

_LINEAR: Final = ("first", "keep", "heaviest")


def policies() -> dict[str, Policy]:
    """Return the policies by name."""
    features = LLVM_22.features
    count = len(features)
    shift, scale = np.full(count, 1.0), np.full(count, 0.5)
    dense = network.build(
        features,
        "decision",
        LogNormalisation(shift, scale),
        initial_layers((count, 16, 1), np.random.default_rng(0)),
        problem=EVICTION,
        rule="pick",
    )
    return {**{name: eviction_policy(name) for name in _LINEAR}, "network": dense}


def compare(
    corpus: Corpus, plugin: Plugin, name: str, used: Mapping[str, Policy], files: Mapping[str, Path]
) -> dict[str, Any]:
    """Compile one module under each policy in both ways."""
    result: dict[str, Any] = {"same": {}, "changed": {}, "questions": {}, "kept": {}}
    with temporary_folder("agreement") as text:
        folder = Path(text)
        try:
            module = optimise(corpus, corpus.module(name), plugin.toolchain.clang, "-O2", folder)
        except RuntimeError as error:
            return {"failure": str(error)}
        stock = folder / "stock.o"
        if not module.compile(stock).ok:
            return {"failure": "the stock compiler fails"}
        for way, policy in used.items():
            out, log = folder / "plugin.o", folder / "log"
            options = [f"-nestor-eviction={files[way]}", f"-nestor-allocation-log={log}"]
            done = module.compile(out, as_flags(plugin, options))
            if not done.ok:
                return {"failure": f"{way}: {done.reason}"}
            words: list[str | Path] = [module.clang, *module.options, "-x", "ir", module.bitcode]
            asked = folder / "channel.o"
            try:
                compile_over_channel(
                    [*words, "-o", asked], partial(policy_answer, policy), channel_options, LIMITS
                )
            except NestorError as error:
                return {"failure": f"{way}, channel: {error}"}
            result["same"][way] = sha256_of(out) == sha256_of(asked)
            result["changed"][way] = sha256_of(out) != sha256_of(stock)
            functions = allocation_log.read(log)
            result["questions"][way] = sum(f.questions for f in functions)
            result["kept"][way] = sum(f.kept for f in functions)
    return result


def main() -> None:
    """Compare, print and record."""
    parser = arguments(str(__doc__).partition("\n")[0], "modules to compare")
    parser.add_argument("corpus", type=Path)
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    plugin = ensure_plugin(find())
    options.work.mkdir(parents=True, exist_ok=True)
    used = policies()
    files = {name: options.work / f"{name}.safetensors" for name in used}
    for name, policy in used.items():
        bundle.save(policy, files[name])
    results = sweep(
        Journal(options.work / "agreement.jsonl", plugin.digest),
        [module.name for module in sample(corpus.modules, options.sample)],
        lambda name: compare(corpus, plugin, name, used, files),
        options.jobs,
        say,
    )
    good = [value for value in results.values() if "failure" not in value]
    titles = ("policy", "modules", "other than stock's", "equal", "questions", "kept for stock")
    columns = [(title, "{:,}" if title != "policy" else "{}") for title in titles]
    rows = []
    for kept in (False, True):
        for name in used:
            ours = [v for v in good if (v["kept"][name] > 0) == kept]
            counts = ("changed", "same", "questions", "kept")
            row = [sum(v[count][name] for v in ours) for count in counts]
            rows.append([f"{name}{', some kept' if kept else ''}", len(ours), *row])
    conclude("channel", columns, rows, unequal(results), plugin, options.json)


if __name__ == "__main__":
    main()
