"""Small sources, and the real compiler with the plugin on them."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nestor.compiler.plugin import Plugin, as_taken_by
from nestor.policy import bundle
from nestor.policy.network import LogNormalisation, MlpPolicy, build, initial_layers
from nestor.policy.spec import F64, Metadata, Policy
from nestor.policy.trees import TreesPolicy
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size import builtins
from nestor.problems.inlining_size.log import read

NOT_TRIED, INLINED, CALLEE_DELETED, FAILED = range(4)

# Four callers of small helpers, whose sizes lie on both sides of the stock heuristic's answers,
# and enough that is not inlined for the growth cap to stay away.
SOURCE = (
    """
extern int sink(int);
static int small(int v) { return v + 1; }
static int middle(int v) {
  for (int i = 0; i < v; ++i) { sink(i); sink(v - i); if (i & 4) sink(i * v); }
  return sink(v) + small(v);
}
static int nested(int v) { return middle(v) + small(v) * middle(v + 3); }
int first(int v) { return small(v) + middle(v); }
int second(int v) { return nested(v) - small(v); }
int third(int v) { return nested(v + 1) * nested(v); }
int fourth(int v) { return middle(v * v); }
int ballast(int v) {
  """
    + "sink(v); " * 150
    + """
  return v;
}
"""
)

RECURSIVE = """
int sink(int);
int f(int n) {
  if (n == 0) return sink(1) + sink(2);
  sink(n);
  int a = f(0);
  sink(a);
  return a + f(n - 1);
}
"""
"""Stock inlines the first call of f in itself at -O2."""

CXX_SOURCE = """
#include <stdexcept>
#include <string>
#include <vector>
struct Base { virtual ~Base(); virtual int value(int) const; };
struct Guard { std::vector<int> &v; ~Guard() { v.clear(); } };
int Base::value(int n) const { if (n < 0) throw std::runtime_error("negative"); return n; }
Base::~Base() {}
static int collect(std::vector<int> &v, const Base &b, int n) {
  Guard guard{v};
  for (int i = 0; i < n; ++i) v.push_back(b.value(i));
  if (v.size() > 100) throw std::length_error("long");
  return v.empty() ? 0 : v.back();
}
int run(int n) {
  std::vector<int> v;
  Base b;
  try { return collect(v, b, n) + collect(v, b, n + 1); }
  catch (const std::length_error &e) { return int(std::string(e.what()).size()); }
}
"""


@dataclass(frozen=True)
class Result:
    """What one compile left behind."""

    object: Path
    log: Path
    returncode: int
    stderr: str

    @property
    def bytes(self) -> bytes:
        assert self.returncode == 0, self.stderr
        return self.object.read_bytes()

    @property
    def trajectory(self) -> Trajectory:
        assert self.returncode == 0, self.stderr
        return read(self.log)

    @property
    def decisions(self) -> dict[int, int]:
        """Site key → decision."""
        records = self.trajectory.decisions
        assert len(set(records["site"].tolist())) == len(records), "site keys are not unique"
        return dict(zip(records["site"].tolist(), records["answer"].tolist(), strict=True))


@dataclass
class Workbench:
    """Compiles sources with the plugin's options; every compile has files of its own."""

    plugin: Plugin
    folder: Path
    count: int = 0

    def source(self, text: str, name: str = "unit.c") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def compile(
        self,
        source: str | Path,
        policy: Policy | Path | str | None = None,
        *options: str,
        flags: Sequence[str] = ("-Oz",),
        log: bool = False,
        overrides: Mapping[int, int] | str | None = None,
        program: str | None = None,
        mllvm: Sequence[str] = (),
        name: str = "unit.c",
    ) -> Result:
        """Compile ``source``; a policy of None loads no plugin, ``""`` gives it no policy."""
        self.count += 1
        out, trace = self.folder / f"{self.count}.o", self.folder / f"{self.count}.log"
        path = self.source(source, name) if isinstance(source, str) else source
        nestor = list(options)
        if isinstance(policy, Policy):
            policy = self.save(policy)
        if policy:
            nestor.append(f"-nestor-policy={policy}")
        if log:
            nestor.append(f"-nestor-log={trace}")
        if overrides is not None:
            nestor.append(f"-nestor-overrides={self.overrides(overrides)}")
        if program is not None:
            summary = self.folder / f"{self.count}.program"
            summary.write_text(program)
            nestor.append(f"-nestor-program={summary}")
        clang = (
            self.plugin.toolchain.clangxx if name.endswith("cpp") else self.plugin.toolchain.clang
        )
        load = as_taken_by([clang], self.plugin.words()) if policy is not None else []
        words = [w for o in [*nestor, *mllvm] for w in ("-mllvm", o)]
        return self.run([clang, *flags, *load, *words, "-c", path, "-o", out], out, trace)

    def run(self, command: Sequence[str | Path], out: Path, trace: Path) -> Result:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
        assert done.returncode >= 0, f"signal {-done.returncode}: {done.stderr}"
        assert "PLEASE submit a bug report" not in done.stderr, done.stderr
        return Result(out, trace, done.returncode, done.stderr)

    def save(self, policy: Policy) -> Path:
        path = self.folder / f"{bundle.digest(policy)[:16]}.safetensors"
        bundle.save(policy, path)
        return path

    def overrides(self, content: Mapping[int, int] | str) -> Path:
        path = self.folder / f"{self.count}.overrides"
        if not isinstance(content, str):
            lines = [
                f"site {site & (1 << 64) - 1:016x} {'inline' if inline else 'keep'}\n"
                for site, inline in content.items()
            ]
            content = "nestor-overrides 1\n" + "".join(lines)
        path.write_text(content)
        return path


def random_network(
    features: Sequence[str],
    seed: int = 0,
    hidden: Sequence[int] = (16,),
    answers: str = "decision",
) -> MlpPolicy:
    """A network that says yes and no in turn."""
    count = len(features)
    rng = np.random.default_rng(seed)
    normalisation = LogNormalisation(np.full(count, 1.5), np.full(count, 0.5))
    return build(
        features,
        answers,
        normalisation,
        initial_layers((count, *hidden, 1), rng),
        problem="inlining-size",
    )


def leaf(features: Sequence[str], value: float, problem: str = "inlining-size") -> TreesPolicy:
    """Trees that deviate wherever ``value`` is above 0, whatever is asked."""
    zero = np.zeros(1, np.int32)
    return TreesPolicy(
        Metadata("trees", tuple(features), "deviation", "none", problem=problem),
        root=zero,
        feature=zero - 1,
        threshold=np.zeros(1),
        left=zero,
        right=zero,
        value=np.array([value]),
    )


def random_forest(
    features: Sequence[str],
    seen: F64,
    seed: int = 0,
    answers: str = "decision",
    known: F64 | None = None,
) -> TreesPolicy:
    """Trees of depth 4 whose thresholds are values that were ``seen`` [n, features]."""
    trees, splits = 40, 15
    rng = np.random.default_rng(seed)
    size = 2 * splits + 1
    inner = np.tile(np.arange(size) < splits, trees)
    first = np.repeat(np.arange(trees) * size, size)
    child = first + 2 * np.tile(np.arange(size), trees) + 1
    feature = rng.integers(len(features), size=trees * size)
    threshold = seen[rng.integers(len(seen), size=trees * size), feature]
    return TreesPolicy(
        Metadata("trees", tuple(features), answers, "none", problem="inlining-size"),
        root=(np.arange(trees) * size).astype(np.int32),
        feature=np.where(inner, feature, -1).astype(np.int32),
        threshold=np.where(inner, threshold, 0.0),
        left=np.where(inner, child, 0).astype(np.int32),
        right=np.where(inner, child + 1, 0).astype(np.int32),
        value=np.where(inner, 0.0, rng.normal(size=trees * size)),
        range=known,
    )


ALWAYS, NEVER = builtins.constant(inline=True), builtins.constant(inline=False)
