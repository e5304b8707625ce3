"""Which phase of LTO should a policy decide in: the compiles before the link, the link, or both?

    python -m benchmarks.lto_phases CORPUS PROGRAM [--compile stock distilled]
        [--link stock distilled] [--json FILE]

A row is a policy in the compiles and one in the link; linked bytes and code against the first row.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import get_args

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import local_pool, policy_named
from nestor.build.build import Job
from nestor.build.lto import LtoBuild
from nestor.build.lto_link import Prelinked
from nestor.change import change_pct
from nestor.cli.setup import program_named
from nestor.compiler.invocation import LtoKind, prelink_command
from nestor.compiler.process import run
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.plugin_flags import lto_flags, plugin_flags, policy_argument


def policy_or_stock(name: str) -> NamedPolicy | None:
    """Return the policy of a name, None for ``stock``."""
    return None if name == "stock" else policy_named(name)


def compiled(
    pool: Pool, program: Program, kind: LtoKind, policy: NamedPolicy | None, folder: Path
) -> dict[str, Path]:
    """Compile the program's modules for LTO under ``policy`` into ``folder``."""
    folder.mkdir()
    flags = []
    if policy is not None:
        flags = plugin_flags(pool.plugin, policy_argument(policy, pool.place.files))

    def one(item: tuple[int, str]) -> Path:
        number, name = item
        module = pool.corpus.module(name)
        bitcode, out = pool.corpus.bitcode(module), folder / f"{number}.o"
        command = prelink_command(pool.plugin.toolchain, module.options, bitcode, out, kind, flags)
        outcome = run(command, pool.limits)
        if not outcome.ok:
            raise SystemExit(f"{name}: {outcome.reason}")
        return out

    objects = pool.map(one, list(enumerate(program.modules)))
    return dict(zip(program.modules, objects, strict=True))


def main() -> int:
    """Print a row for each pair of policies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("program")
    parser.add_argument("--compile", nargs="+", default=["stock", "distilled"])
    parser.add_argument("--link", nargs="+", default=["stock", "distilled"])
    parser.add_argument("--lto", choices=get_args(LtoKind), default="full")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    program = program_named(corpus, options.program)
    build = LtoBuild(options.lto, lto_flags)
    first: tuple[int, int] | None = None
    rows: list[list[object]] = []
    with local_pool(corpus) as pool, tempfile.TemporaryDirectory(prefix="nestor-phases-") as text:
        for number, before in enumerate(options.compile):
            folder = Path(text) / str(number)
            kept = compiled(pool, program, options.lto, policy_or_stock(before), folder)
            objects = Prelinked(kept, failures={})
            for inside in options.link:
                job = Job(program, build.modes[0], policy_or_stock(inside))
                done = build.link(pool, job, objects)
                if done.measure is None:
                    rows.append([before, inside, None])
                    print(f"{before:14} {inside:14} failed: {done.failure}", flush=True)
                    continue
                sizes = done.measure.loadable, done.measure.text
                first = first or sizes
                linked, code = (change_pct(a, b) for a, b in zip(first, sizes, strict=True))
                rows.append([before, inside, (linked, code)])
                print(
                    f"{before:14} {inside:14} {sizes[0]:>10,}  {linked:+6.2f} /{code:+6.2f}",
                    flush=True,
                )
        machine = describe(pool.plugin.toolchain)
    if options.json:
        columns = [("pre-link", "{}"), ("in the link", "{}"), (options.program, record.CHANGES)]
        about = (
            f"{options.lto.capitalize()} LTO: a policy before the link, in the link, or both;"
            " linked bytes / code against the first row."
        )
        record.write(options.json, about, {"phases": record.table(columns, rows)}, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
