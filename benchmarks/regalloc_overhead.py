"""
What policies about register allocation cost: the compiler's processor time over stock.

    python -m benchmarks.regalloc_overhead CORPUS [--modules N] [--rounds N] [--variants NAME ...]
        [--instructions] [--json FILE]

Whole compiles from the corpus' bitcode, of modules of all sizes. All variants compile a module
one after the other, in an order that turns with the round; each round gives a ratio over all
modules. Policies answer as the stock heuristic nearly always, so that a ratio is the price of
asking and not of another program: how many objects are stock's is printed. Those of the variants
"leaving", "best" and "shipped-eviction" do leave it in some functions, without which nothing would
be tried.
"""

import argparse
import itertools
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import record
from benchmarks.compile_cpu import children_cpu_seconds, median_interval
from benchmarks.machine import describe
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.process import environment
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.errors import NestorError
from nestor.files import sha256_of
from nestor.policy import bundle, network
from nestor.policy.network import Layer, LogNormalisation
from nestor.policy.rule import PICK, VALUE
from nestor.policy.spec import F64
from nestor.problem.registry import find_problem

DEFAULT: Final = "eviction_default"
"""The feature that is 1 for the candidate that the stock heuristic chooses."""
FEW: Final = (DEFAULT, "weight_to_own", "weight_to_least", "is_own", "nr_broken_hints", "is_local")
"""What a linear policy reads here."""
MANY: Final = (
    *FEW, "position", "candidates", "is_free", "nr_urgent", "is_hint", "nr_rematerializable",
    "nr_defs_and_uses", "weighed_reads_by_max", "weighed_writes_by_max",
    "weighed_read_writes_by_max", "weighed_indvars_by_max", "hint_weights_by_max",
    "start_bb_freq_by_max", "end_bb_freq_by_max", "hottest_bb_freq_by_max", "liverange_size",
    "use_def_density", "max_stage", "min_stage",
)  # fmt: skip
"""What a network reads here: 25 features."""
HIDDEN: Final = 16
LARGEST: Final = 512 << 10
"""Bytes of a module's bitcode; those of larger ones take long in a benchmark of many rounds."""

LEAVES: Final = 0.05
"""The weight of the default in policies that leave it in some functions, as trained ones do."""

Options = Sequence[str]


def eviction_policy(
    features: Sequence[str], hidden: Sequence[int], seed: int, default: float = 3.0
) -> bytes:
    """Return a policy file that picks the stock heuristic's candidate unless others weigh more.

    Unit 0 of each layer hands the default on; all other weights are random and small.

    :param default: the weight of the default; 3 leaves it nearly never.
    """
    rng = np.random.default_rng(seed)
    widths = (len(features), *hidden, 1)
    layers = []
    for before, after in itertools.pairwise(widths):
        weight = rng.normal(0.0, 0.02, (after, before)).astype(np.float32)
        weight[0, 0] = default  # of the first feature
        layers.append(Layer(weight, np.zeros(after, dtype=np.float32)))
    normalisation = LogNormalisation(np.zeros(len(features)), np.ones(len(features)))
    shared = {"candidates"}
    policy = network.build(
        features,
        "decision",
        normalisation,
        layers,
        problem="regalloc-eviction",
        rule=PICK.name,
        candidate_features=[name for name in features if name not in shared],
    )
    return bundle.to_bytes(policy)


def priority_policy(seed: int) -> bytes:
    """Return a policy file whose answers are nearly 0, the stock heuristic's priority."""
    features = ("li_size", "stage", "weight", "rank", "is_global", "has_hint", "is_local")
    rng = np.random.default_rng(seed)
    weight = rng.normal(0.0, 1e-12, (1, len(features))).astype(np.float32)
    policy = network.build(
        features,
        "decision",
        LogNormalisation(np.zeros(len(features)), np.ones(len(features))),
        (Layer(weight, np.zeros(1, dtype=np.float32)),),
        problem="regalloc-priority",
        rule=VALUE.name,
    )
    return bundle.to_bytes(policy)


def variants(plugin: Plugin, folder: Path) -> dict[str, list[str]]:
    """Return the options of each variant by its name; policies are written into ``folder``."""

    def saved(name: str, content: bytes) -> str:
        path = folder / f"{name}.safetensors"
        path.write_bytes(content)
        return str(path)

    linear = saved("linear", eviction_policy(FEW, (), 0))
    deep = saved("network", eviction_policy(MANY, (HIDDEN, HIDDEN), 0))
    priority = saved("priority", priority_policy(0))
    leaving = [saved(f"leaving-{n}", eviction_policy(FEW, (), n, LEAVES)) for n in range(4)]
    portfolio = [f"-nestor-eviction={path}" for path in leaving]
    shipped = find_problem("regalloc-eviction").policy("shipped-eviction").policy
    if shipped is None:
        raise NestorError("'shipped-eviction' is not packaged: install the project again.")
    packaged = saved("shipped", bundle.to_bytes(shipped))
    asked = {
        "plugin idle": [],
        "default": ["-nestor-eviction=default", "-nestor-priority=default"],
        "linear": [f"-nestor-eviction={linear}"],
        "network": [f"-nestor-eviction={deep}"],
        "priority": [f"-nestor-priority={priority}"],
        "linear + priority": [f"-nestor-eviction={linear}", f"-nestor-priority={priority}"],
        "leaving": portfolio[:1],
        "best of 1": [*portfolio[:1], "-nestor-best"],
        "best of 4": [*portfolio, "-nestor-best"],
        "best of 1 + priority": [
            *portfolio[:1], f"-nestor-priority={priority}", "-nestor-best"
        ],
        "shipped-eviction": [f"-nestor-eviction={packaged}"],
    }  # fmt: skip
    load = f"-fpass-plugin={plugin.path}"
    return {
        name: [load, *(word for option in options for word in ("-mllvm", option))]
        for name, options in asked.items()
    }


def chosen(corpus: Corpus, count: int, largest: int) -> list[Module]:
    """Return ``count`` modules of all sizes of bitcode up to ``largest`` bytes."""
    sized = [(corpus.bitcode(module).stat().st_size, module.name) for module in corpus.modules]
    names = [name for size, name in sorted(sized) if size <= largest]
    places = np.linspace(len(names) - 1, 0, min(count, len(names))).astype(int)
    by_name = {module.name: module for module in corpus.modules}
    return [by_name[names[place]] for place in places]


def processor_seconds(command: Sequence[str], _: Path) -> float:
    """Return the processor time of a compile and of the children that it has waited for."""
    before = children_cpu_seconds()
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    return children_cpu_seconds() - before


def instructions(command: Sequence[str], folder: Path) -> float:
    """Return the instructions that a compile executes, without those of forked children."""
    callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.%p'}"]
    done = subprocess.run(
        [*callgrind, *command], env=environment(), capture_output=True, text=True, check=True
    )
    return float(re.findall(r"Collected : (\d+)", done.stderr)[-1])


Cost = Callable[[Sequence[str], Path], float]


@dataclass(frozen=True)
class Measured:
    """What the compiles of a benchmark came to, by variant."""

    costs: Mapping[str, F64]
    """The cost of every compile, ``[rounds, modules]``."""
    same: Mapping[str, int]
    """Modules whose objects are stock's."""

    def by_round(self, name: str) -> list[float]:
        """Return each round's ratio to stock over all modules."""
        ratio = self.costs[name].sum(axis=1) / self.costs[STOCK].sum(axis=1)
        return [float(value) for value in ratio]

    def of_least(self, name: str) -> float:
        """Return the ratio of the sums of each module's least cost over the rounds."""
        least = {key: costs.min(axis=0).sum() for key, costs in self.costs.items()}
        return float(least[name] / least[STOCK])


STOCK: Final = "stock"


def measure(
    plugin: Plugin,
    corpus: Corpus,
    modules: Sequence[Module],
    options: Mapping[str, Options],
    rounds: int,
    cost: Cost,
    *,
    show: bool = False,
) -> Measured:
    """Compile every module in every round by every variant and return what it cost.

    :param show: print each compile's cost.
    """
    names = [STOCK, *options]
    costs = {name: np.zeros((rounds, len(modules))) for name in names}
    same = dict.fromkeys(names, 0)
    with tempfile.TemporaryDirectory(prefix="nestor-overhead-") as text:
        folder = Path(text)
        for turn in range(rounds):
            start = turn % len(names)
            for number, module in enumerate(modules):
                digests = {}
                for name in [*names[start:], *names[:start]]:
                    out = folder / "out.o"
                    command = compile_command(
                        plugin.toolchain,
                        module.options,
                        corpus.bitcode(module),
                        out,
                        options.get(name, ()),
                    )
                    costs[name][turn, number] = cost(command, folder)
                    digests[name] = sha256_of(out)
                    if show:
                        print(f"{module.name} {name} {costs[name][turn, number]:.0f}", flush=True)
                for name in names if turn == 0 else ():
                    same[name] += digests[name] == digests[STOCK]
            ratios = ", ".join(
                f"{name} {costs[name][turn].sum() / costs[STOCK][turn].sum():.3f}"
                for name in names[1:]
            )
            print(f"round {turn + 1}: stock {costs[STOCK][turn].sum():.4g}; {ratios}", flush=True)
    return Measured(costs, same)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--modules", type=int, default=40)
    parser.add_argument("--largest", type=int, default=LARGEST, help="bytes of bitcode")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--variants", nargs="+", help="only these")
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="count instructions with callgrind: exact on a busy machine, some 50 times slower,"
        " one round, without the variants that try (their forked children are not counted)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()

    toolchain = find()
    plugin, corpus = ensure_plugin(toolchain), store.load(arguments.corpus)
    modules = chosen(corpus, arguments.modules, arguments.largest)
    unit = "instructions" if arguments.instructions else "processor seconds"
    machine = describe(toolchain)
    print(f"{unit} of the compiler over stock, {len(modules)} modules")
    for key, value in machine.items():
        print(f"  {key}: {value}")
    with tempfile.TemporaryDirectory(prefix="nestor-policies-") as text:
        options = variants(plugin, Path(text))
        if arguments.variants:
            options = {name: options[name] for name in arguments.variants}
        if arguments.instructions:
            tries = ("best", "shipped")
            options = {n: words for n, words in options.items() if not n.startswith(tries)}
        rounds = 1 if arguments.instructions else arguments.rounds
        cost = instructions if arguments.instructions else processor_seconds
        measured = measure(
            plugin, corpus, modules, options, rounds, cost, show=arguments.instructions
        )
    cells: list[list[object]] = []
    for name in options:
        ratios = measured.by_round(name)
        low, high = median_interval(ratios)
        median, least = statistics.median(ratios), measured.of_least(name)
        same = f"{measured.same[name]} of {len(modules)}"
        cells.append([name, median, f"{low:.3f} to {high:.3f}", least, same])
        print(
            f"{name:22} median {median:.4f} [{low:.4f}, {high:.4f}]"
            f"  of least {least:.4f}  objects as stock's: {same}"
        )
    if arguments.json:
        columns = [
            ("variant", "{}"), (f"{unit} over stock", "{:.3f}×"), ("95 % interval", "{}"),
            ("of the least of all rounds", "{:.3f}×"), ("objects as stock's", "{}"),
        ]  # fmt: skip
        about = "Cost of whole -O2 compiles with policies about register allocation, over stock."
        name = "instructions" if arguments.instructions else "compile_cpu"
        record.write(arguments.json, about, {name: record.table(columns, cells)}, machine)


if __name__ == "__main__":
    main()
