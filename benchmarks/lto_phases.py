"""Which phase of LTO should a policy decide in: the compiles before the link, the link, or both?

    python -m benchmarks.lto_phases CORPUS PROGRAM [--compile stock distilled]
        [--link stock distilled]

A row is a policy in the compiles and one in the link; linked bytes and code against the first row.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import get_args

from nestor.cli.setup import program_named, ready_plugin
from nestor.compiler.lto import LtoKind, prelink_command
from nestor.compiler.objects import Measure
from nestor.compiler.process import run
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.rollout.lto import LtoRequest, lto_link
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool


def argument(policy: str) -> Path | str | None:
    """Return what a request takes for a policy's name, or ``stock``."""
    return None if policy == "stock" else policy_file(policy).argument


def compiled(
    pool: Pool, program: Program, kind: LtoKind, policy: str, folder: Path
) -> dict[str, Path]:
    """Compile the program's modules for LTO under ``policy``."""
    folder.mkdir()
    decides = argument(policy)
    flags = [] if decides is None else pool.plugin.flags(decides)

    def one(item: tuple[int, str]) -> Path:
        number, name = item
        module = pool.corpus.module(name)
        bitcode, out = pool.corpus.bitcode(module), folder / f"{number}.o"
        command = prelink_command(pool.plugin.toolchain, module.options, bitcode, out, kind, flags)
        outcome = run(command, pool.limits)
        if not outcome.ok:
            raise SystemExit(f"{name}: {outcome.reason}")
        return out

    made = pool.map(one, list(enumerate(program.modules)))
    return dict(zip(program.modules, made, strict=True))


def main() -> int:
    """Print a row for each pair of policies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("program")
    parser.add_argument("--compile", nargs="+", default=["stock", "distilled"])
    parser.add_argument("--link", nargs="+", default=["stock", "distilled"])
    parser.add_argument("--lto", choices=get_args(LtoKind), default="full")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    program = program_named(corpus, options.program)
    first: Measure | None = None
    with (
        Pool(corpus, ready_plugin(None, lambda *_: None)) as pool,
        tempfile.TemporaryDirectory(prefix="nestor-phases-") as text,
    ):
        for number, before in enumerate(options.compile):
            folder = Path(text) / str(number)
            objects = compiled(pool, program, options.lto, before, folder)
            for inside in options.link:
                request = LtoRequest(program, options.lto, policy=argument(inside))
                done = lto_link(pool, request, objects)
                if done.measure is None:
                    print(f"{before:14} {inside:14} failed: {done.failure}", flush=True)
                    continue
                first = first or done.measure
                linked = 100 * (done.measure.loadable / first.loadable - 1)
                code = 100 * (done.measure.text / first.text - 1)
                print(
                    f"{before:14} {inside:14} {done.measure.loadable:>10,}"
                    f"  {linked:+6.2f} /{code:+6.2f}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
