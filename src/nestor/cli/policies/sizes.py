"""``nestor sizes``: train a size model, and show how far it is off."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.table import Table

from nestor.cli.console import print_json, print_line, stdout
from nestor.cli.options import OutputFile
from nestor.cli.remarks import remark
from nestor.cli.setup import ready_pool
from nestor.corpus import store
from nestor.errors import NestorError
from nestor.problems.inlining_size.size.fit import FitSettings, fit, groups
from nestor.rollout.local_pool import PoolSettings

if TYPE_CHECKING:
    from nestor.problems.inlining_size.size.judge import Errors, Predictor


@dataclass(frozen=True)
class Sizes:
    r"""Train a model that predicts a function's machine code in bytes from its IR.

    Modules of the training and validation projects are compiled by stock and with some answers
    turned around; modules of the held-out projects say how far the model is off, beside the
    target's own size cost, the number of instructions, and a model that reads what LLVM's
    estimator of 2020 read. Learners may use it in place of code: 'nestor train --estimate'.

    Examples:
        nestor sizes corpus/bench --out sizes.safetensors
        nestor sizes corpus/tiny --out sizes.safetensors --modules 4 --json
    """

    corpus: tyro.conf.Positional[Path]
    """A corpus with training projects."""
    out: OutputFile
    """The model's file; OUT.compiles/ keeps what was compiled, and is used again."""
    modules: int = 25
    """Modules of each project, at most."""
    policy: str | None = None
    """Judge changes under this policy instead of under answers turned around at random."""
    seed: int = 0
    """Seed of which modules are drawn and of the fit."""
    fit: FitSettings = field(default_factory=FitSettings)
    """How the model is fitted."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Train, judge, and print."""
        from nestor.problems.inlining_size import PROBLEM  # these take numpy
        from nestor.problems.inlining_size.size import examples, model
        from nestor.problems.inlining_size.size.judge import affine, judge

        corpus = store.load(self.corpus)
        kept = self.out.with_name(self.out.name + ".compiles")
        training = examples.drawn(corpus, ("train", "validation"), self.modules, self.seed)
        changer = PROBLEM.policy(self.policy) if self.policy else None
        unseen = examples.drawn(corpus, ("test",), self.modules, self.seed)
        with ready_pool(PROBLEM, corpus, self.llvm, self.pool) as (pool, report):
            pairs = examples.collect(pool, training, kept, report)
            held_out = examples.collect(pool, unseen, kept, report, changer)
        failed = len(training) + len(unseen) - len(pairs) - len(held_out)
        rows = examples.join(one for pair in pairs for one in pair)
        if not len(rows.y):
            raise NestorError(f"No function in the training projects of {self.corpus}.")
        provenance = {
            "corpus": corpus.digest,
            "projects": sorted({module.project for module in training}),
            "functions": len(rows.y),
            "seed": self.seed,
        }
        predictors: dict[str, Predictor] = {
            "instructions": affine(rows, "instructions"),
            "the target's size cost": affine(rows, "initial_size"),
        }
        for name, read in (("inputs of 2020", groups(rows.counts)["2020"]), ("ours", None)):
            fitted = fit(rows.counts, rows.x, rows.y, self.seed, self.fit, read, provenance)
            predictors[name] = fitted.predict_log
        model.save(fitted, self.out)
        usable = [pair for pair in held_out if len(pair[0].log.names)]
        found = {name: judge(p, usable) for name, p in predictors.items()} if usable else {}
        if self.json:
            errors = {name: asdict(one) for name, one in found.items()}
            content = {"model": provenance, "modules": len(usable), "failed": failed}
            print_json(content | {"errors": errors})
        else:
            print_line(f"{self.out}: {len(rows.y):,} functions of {len(training):,} modules")
            stdout.print(table(found, len(usable)) if found else "There are no held-out projects.")
        if failed:
            remark(f"{failed} modules could not be compiled: the model has not seen them.")
        return 0


def table(found: "dict[str, Errors]", modules: int) -> Table:
    """Return one row per predictor."""
    shown = Table(title=f"Errors on {modules:,} modules of held-out projects", title_style="")
    for heading in ("predicted by", "function: mean", "median", "bytes", "module: median",
                    "change: correlation", "sign", "module's change"):  # fmt: skip
        shown.add_column(heading, justify="left" if heading == "predicted by" else "right")
    for name, e in found.items():
        shown.add_row(
            name, f"{e.mean_pct:.1f} %", f"{e.median_pct:.1f} %", f"{e.mean_bytes:.1f}",
            f"{e.module_pct:.1f} %", f"{e.change_correlation:.3f}", f"{e.change_sign_pct:.0f} %",
            f"{e.module_change_correlation:.3f}",
        )  # fmt: skip
    return shown
