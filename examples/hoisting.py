"""A decision problem and a learner of one's own, in a hundred lines.

    python examples/hoisting.py CORPUS OUT

The problem: once per module, does LLVM's GVNHoist run, a pass that moves what both sides of a
branch compute before it? By default it does not. The learner: a linear policy that follows the
gradient of what its answers saved. docs/internals/add-your-own.md goes through it.
"""

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import Measure, measure
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain, find
from nestor.corpus import store
from nestor.corpus.model import Corpus
from nestor.learn.gradient import Walk, descend, entropy, log_probabilities
from nestor.learn.training import Run, train
from nestor.policy import bundle, network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.problems.check import Answer, Play, check_problem
from nestor.problems.problem import Problem

PROBLEM = Problem("hoisting", 2, "default", "decision", "-Oz", "bytes of the object")
FEATURES = ("functions", "weak_functions", "bytes_of_code", "bytes_of_unwind_tables")


@dataclass(frozen=True)
class Modules:
    """The problem in action: one question a module, on features of its stock object."""

    toolchain: Toolchain
    corpus: Corpus

    def compiled(self, name: str, answer: int) -> Measure:
        """Compile a module under an answer and measure the object."""
        module = self.corpus.module(name)
        flags = ["-mllvm", "-enable-gvn-hoist"] if answer else []
        with tempfile.TemporaryDirectory() as folder:
            out, bitcode = Path(folder) / "object", self.corpus.bitcode(module)
            run(compile_command(self.toolchain, module.options, bitcode, out, flags))
            return measure(out)

    def play(self, name: str, answer: Answer | None) -> Play:
        """Ask the module's question (nestor.problems.check.Compile)."""
        stock = self.compiled(name, 0)
        weak = sum(function.weak for function in stock.functions)
        unwind = stock.loadable - stock.text - stock.sections[".rodata"]
        x = np.array([[len(stock.functions), weak, stock.text, unwind]], dtype=np.float64)
        given = answer(x[0], 0) if answer else 0
        score = float(self.compiled(name, given).loadable if given else stock.loadable)
        return Play(x, np.array([0]), np.array([given]), score)


@dataclass(frozen=True)
class State:
    """What the learner knows."""

    step: int
    walk: Walk


@dataclass(frozen=True)
class Bandit:
    """The learner (nestor.learn.learner.Learner): play a few modules, follow the gradient."""

    modules: Modules
    units: tuple[str, ...]
    start: MlpPolicy
    seed: int = 0
    steps: int = 10

    def init(self) -> State:
        """Begin at the start."""
        return State(0, Walk.begin(self.start))

    def batch(self, state: State) -> list[tuple[Play, float]]:
        """Return plays, and the relative saving of each against the default."""
        rng, policy = np.random.default_rng([self.seed, state.step]), self.policy(state)

        def sampled(x: np.ndarray, _default: int) -> int:
            return int(rng.random() < policy.probabilities(x[None])[0])

        chosen = rng.choice(len(self.units), size=min(8, len(self.units)), replace=False)
        plays = [(self.units[i], self.modules.play(self.units[i], sampled)) for i in chosen]
        return [(p, 1 - p.score / self.modules.compiled(u, 0).loadable) for u, p in plays]

    def update(
        self, state: State, batch: list[tuple[Play, float]]
    ) -> tuple[State, dict[str, float]]:
        """Make likelier what saved bytes."""
        import torch

        z = torch.from_numpy(self.start.normalise(np.concatenate([p.x for p, _ in batch])))
        acted = torch.tensor([bool(play.answers[0]) for play, _ in batch])
        saved = torch.tensor([100 * saving for _, saving in batch])

        def loss(net: torch.nn.Module) -> torch.Tensor:
            logits = net(z)
            return -(saved * log_probabilities(logits, acted)).mean() - 0.01 * entropy(logits)

        walk, _value = descend(self.start, state.walk, loss, rate=0.1)
        return replace(state, step=state.step + 1, walk=walk), {"saved_pct": float(saved.mean())}

    def policy(self, state: State) -> MlpPolicy:
        """Return the policy that answers."""
        return state.walk.policy(self.start)


def main(corpus_folder: Path, out: Path, steps: int = 10) -> MlpPolicy:
    """Check the problem, train, and keep the policy."""
    corpus = store.load(corpus_folder)
    modules = Modules(find(), corpus)
    units = tuple(module.name for module in corpus.modules_of("train"))
    check_problem(PROBLEM, units[:4], modules.play)
    x = np.concatenate([modules.play(unit, None).x for unit in units])
    linear = network.initial_layers((len(FEATURES), 1), np.random.default_rng(0))
    normalisation = LogNormalisation(*network.fit_normalisation(x))
    start = network.build(FEATURES, "deviation", normalisation, linear, problem=PROBLEM.name)
    identity = {"problem": PROBLEM.name, "corpus": corpus.digest, "steps": steps}
    policy = train(Bandit(modules, units, start, steps=steps), Run(out, identity)).policy
    bundle.save(policy, out / "policy.safetensors")
    assert isinstance(policy, MlpPolicy)
    return policy


if __name__ == "__main__":
    weights = main(Path(sys.argv[1]), Path(sys.argv[2])).layers[0].weight[0]
    print("weights of hoisting:", dict(zip(FEATURES, weights.tolist(), strict=True)))
