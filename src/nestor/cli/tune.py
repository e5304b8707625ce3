"""``nestor tune``: search for the decisions that make one program smallest."""

import json
import shlex
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape

from nestor.cli.console import percent, print_json, progress, stdout
from nestor.cli.setup import program_named, ready_plugin
from nestor.compiler.lto import LtoKind
from nestor.corpus import store
from nestor.corpus.relink import LinkMode
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.summaries import Summaries, reads_program, summaries
from nestor.tune.search import SearchSettings
from nestor.tune.session import Tuned, TuneSettings, tune


@dataclass(frozen=True)
class Tune:
    r"""Search for the inlining decisions that make one program of a corpus smallest.

    Many decisions are turned around in each compile and paid apart by the linked bytes of each
    function. The result is OUT/overrides.txt, a text file to review and to keep beside the
    source, and OUT/summary.txt if the policy was told of the program: 'nestor clang POLICY
    --overrides FILE --summary FILE' compiles with them. It is never larger than stock in the link
    modes that were asked for, and its size in the others is shown. The search can be stopped at
    any time; the same command goes on, and more --compiles go further.

    Examples:
        nestor tune ninja --corpus corpus/bench --out tuned/ninja
        nestor tune ninja --corpus corpus/bench --out tuned/ninja --compiles 60
        nestor tune lua --corpus corpus/bench --out tuned/lua --policy default --mode gc no-gc
        nestor tune ninja --corpus corpus/bench --out tuned/ninja-lto --lto full \
            --policy distilled
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    out: Path
    """The folder for the result and what is needed to go on."""
    policy: str = "shipped"
    """Where to start: a policy file or a built-in; 'default' tries cost thresholds first."""
    mode: tuple[LinkMode, ...] = ("gc",)
    """Link modes whose mean size is made small, and none of which may grow."""
    compiles: float = 25.0
    """Whole-program compiles to spend."""
    sweep: bool = True
    """From the default, try cost thresholds first."""
    lto: LtoKind | None = None
    """Search inside the linker, under LTO of this kind."""
    summary: bool = True
    """Give a summary of the stock program to policies that read one."""
    seed: int = 0
    """Seed of the moves' order."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Search, write the overrides and print what they save."""
        policy = policy_file(self.policy)
        corpus = store.load(self.corpus)
        program = program_named(corpus, self.program)
        with progress() as report, tempfile.TemporaryDirectory(prefix="nestor-tune-") as text:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                told: Summaries = {}
                if self.lto is None and self.summary and reads_program(policy.policy):
                    told = summaries(pool, [program], self.mode[:1], Path(text), report)
                result = tune(
                    pool,
                    program,
                    policy,
                    TuneSettings(self.mode, self.sweep, self.lto),
                    SearchSettings(compiles=self.compiles),
                    self.seed,
                    self.out,
                    summary=told.get((program.name, self.mode[0])),
                    progress=report,
                )
        path = self.out / "overrides.txt"
        path.write_text(result.text())
        kept = self._keep(result)
        content = _as_json(result) | {
            "overrides": str(path),
            "summary": None if kept is None else str(kept),
            "command": self._command(result, path, kept),
        }
        (self.out / "result.json").write_text(json.dumps(content, indent=2))
        if self.json:
            print_json(content)
        else:
            _show(result, path)
            stdout.print(f"use them:  {escape(self._command(result, path, kept))}", soft_wrap=True)
        return 0

    def _keep(self, result: Tuned) -> Path | None:
        """Keep the summary under which the overrides were found; no other may lie there."""
        path = self.out / "summary.txt"
        if result.summary is None:
            path.unlink(missing_ok=True)
            return None
        path.write_text(result.summary)
        return path

    def _command(self, result: Tuned, overrides: Path, summary: Path | None) -> str:
        """Return the command that compiles with what was found."""
        words = ["nestor", "clang", result.policy.name, "--overrides", str(overrides)]
        words += [] if summary is None else ["--summary", str(summary)]
        how = "-ffunction-sections -fdata-sections" if self.lto is None else f"-flto={self.lto}"
        return f"{shlex.join(words)} -- -Oz {how} …"


def _as_json(result: Tuned) -> dict[str, Any]:
    return {
        "program": result.program,
        "policy": result.policy.name,
        "policy_digest": result.policy.digest,
        "objective": list(result.modes),
        "overrides_count": len(result.overrides),
        "sizes": {
            mode: {
                "stock": {"linked": before.loadable, "text": before.text},
                "tuned": {
                    "linked": result.best.sizes[mode].loadable,
                    "text": result.best.sizes[mode].text,
                },
            }
            for mode, before in result.stock.sizes.items()
        },
        "curve": [asdict(point) for point in result.curve],
    }


def _show(result: Tuned, path: Path) -> None:
    first = result.curve[0]
    stdout.print("compiles   linked     text")
    for point in result.curve:
        linked, text = (100 * (a / b - 1) for a, b in _pairs(point, first))
        stdout.print(f"{point.compiles:8.1f} {linked:+7.2f} % {text:+7.2f} %")
    for mode, before in result.stock.sizes.items():
        after = result.best.sizes[mode]
        note = "" if mode in result.modes else "  (not searched for)"
        stdout.print(
            f"{mode:6} {before.loadable:>11,} → {after.loadable:>11,} bytes"
            f" {percent(100 * (after.loadable / before.loadable - 1))},"
            f" text {percent(100 * (after.text / before.text - 1))}{note}"
        )
    stdout.print(
        f"{len(result.overrides):,} overrides on top of the policy"
        f" {escape(result.policy.name)}: {escape(str(path))}",
        soft_wrap=True,
    )


def _pairs(point: Any, first: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    return (point.total, first.total), (point.text, first.text)
