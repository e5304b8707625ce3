"""
Releases of LLVM side by side: identity of objects, and what the packaged policies do.

    python -m benchmarks.llvm_versions FOLDER [--releases 19 22] [--tier demo] [--json FILE]

A corpus of the tier is captured by each release into FOLDER, unless it is there. Then all its
modules are compiled in every way that must agree: the default against stock, and each policy in the
release advisor against the same with a log. Last, programs are linked under the packaged policies.
Each part is kept in FOLDER/parts.json, and a benchmark that is started again goes on behind it.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM, policy_named
from nestor.api.programs import evaluate_policies
from nestor.compiler.plugin import ensure_plugin
from nestor.compiler.releases import TESTED
from nestor.compiler.toolchain import Toolchain, ToolchainError, discover
from nestor.corpus.fetch.fetch import fetch
from nestor.corpus.fetch.tiers import recipes
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.evaluate.identity import check_units
from nestor.files import write_atomically
from nestor.rollout.gate import require
from nestor.rollout.local_pool import LocalPool

COMPARED: Final = ("default", "shipped", "distilled", "mlgo2020")
"""Policies whose ways to compile are compared."""
JUDGED: Final = ("shipped", "distilled")
PROGRAMS: Final = (
    "ninja/ninja", "jsoncpp/jsontestrunner_exe", "bzip2/bzip2", "lz4/lz4", "tinyxml2/xmltest",
)  # fmt: skip
Parts = dict[str, Any]


def toolchain_of(release: int) -> Toolchain:
    """Return the installed LLVM of a release.

    :raises ToolchainError: if there is none.
    """
    for toolchain in discover():
        if toolchain.major == release:
            return toolchain
    raise ToolchainError(f"LLVM {release} is not installed: apt-get install clang-{release}.")


def identity_of(pool: LocalPool, name: str) -> Parts:
    """Compile all modules in every way of a policy and return the counts."""
    result = check_units(pool, pool.corpus.modules, policy_named(name))
    return {
        "modules": len(result.modules),
        "decisions": result.decisions,
        "comparisons": result.comparisons,
        "identical": result.identical,
        "failures": [f"{f.what} ({f.side}): {f.reason}" for f in result.failures],
    }


def programs_of(pool: LocalPool, name: str) -> Parts:
    """Link the programs stock and under a policy; return the changes in per cent."""
    (evaluation,) = evaluate_policies(pool, [name], programs=PROGRAMS, summary=True)
    if evaluation.failures:
        first = evaluation.failures[0]
        raise NestorError(f"{first.what} ({first.side}) failed: {first.reason}.")
    return {
        program.name: [program.column_change_pct("linked"), program.column_change_pct("text")]
        for program in evaluation.programs
    }


def measure(folder: Path, release: int, tier: str) -> Parts:
    """Return all parts of one release; those in ``folder`` are not measured again."""
    toolchain = toolchain_of(release)
    plugin = require(PROBLEM, ensure_plugin(toolchain))
    corpus: Corpus = fetch(recipes(tier), folder / f"{tier}-{release}", toolchain).corpus
    kept = folder / "parts.json"
    key = f"{plugin.digest} {tier}"
    parts: Parts = json.loads(kept.read_text()) if kept.exists() else {}
    if parts.get(str(release), {}).get("of") != key:
        parts[str(release)] = {"of": key}
    own: Parts = parts[str(release)]

    def part(kind: str, name: str, work: Callable[[LocalPool, str], Parts]) -> None:
        if f"{kind} {name}" not in own:
            own[f"{kind} {name}"] = work(pool, name)
            write_atomically(kept, json.dumps(parts, indent=1))
        print(release, kind, name, own[f"{kind} {name}"], flush=True)

    with LocalPool(PROBLEM, corpus, plugin) as pool:
        for name in COMPARED:
            part("identity", name, identity_of)
        for name in JUDGED:
            part("programs", name, programs_of)
    return own


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("folder", type=Path, help="keeps the corpora and what is done")
    parser.add_argument("--releases", type=int, nargs="+", default=list(TESTED))
    parser.add_argument("--tier", default="demo")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    releases: list[int] = arguments.releases
    found = {r: measure(arguments.folder, r, arguments.tier) for r in releases}
    if arguments.json:
        versions = {r: toolchain_of(r).version for r in releases}
        counts = [
            [f"LLVM {versions[r]}", name, *(found[r][f"identity {name}"][key] for key in
             ("modules", "decisions", "comparisons", "identical"))]
            for r in releases for name in COMPARED
        ]  # fmt: skip
        columns = [("compiler", "{}"), ("policy", "{}")]
        columns += [(t, "{:,}") for t in ("modules", "decisions", "comparisons", "identical")]
        changes = [
            [program, *(found[r][f"programs {name}"][program] for name in JUDGED for r in releases)]
            for program in PROGRAMS
        ]
        titles = [(f"`{name}`, LLVM {r}", record.CHANGES) for name in JUDGED for r in releases]
        tables = {
            "identity": record.table(columns, counts),
            "programs": record.table([("program", "{}"), *titles], changes),
        }
        about = "Releases of LLVM: identity of objects, and the packaged policies' linked and code"
        machine = describe(toolchain_of(max(releases)))
        machine["llvm"] = ", ".join(versions.values())
        record.write(arguments.json, f"{about} bytes.", tables, machine)


if __name__ == "__main__":
    main()
