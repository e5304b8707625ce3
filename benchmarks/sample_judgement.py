"""What do policies make of packages drawn at random? Fetch, build stock and under policies, keep.

    nestor corpus sample --seed 1 --count 60 --language c++ --json > cxx.json
    python -m benchmarks.sample_judgement judge cxx.json --results RESULTS [--half development]
    python -m benchmarks.sample_judgement hashes BENCH --seen SEEN
    python -m benchmarks.sample_judgement table RESULTS [--json FILE]

``judge`` goes through the packages of a draw, or through those that --package names. Each becomes
one line of RESULTS/<language>.jsonl, also if it cannot be built; a package that has a line is not
built again, so the same command goes on where an earlier session stopped. Build dependencies are
installed on this machine: run it in a container. ``hashes`` writes what training has seen, for
--seen; packages that share code with it are left out of the tables. With ``--corpora`` the
packages are kept, so that other policies need no second build; ``--fetch-only`` is for a half that
is to be judged once.
"""

import argparse
import functools
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import LINK, local_pool, policy_named
from benchmarks.sample_table import LARGEST_SHARE_PCT, tables
from nestor.compiler import toolchain as toolchains
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.corpus.packages.failure import REASONS, Failure
from nestor.corpus.packages.fetch_packages import PackageSettings, fetch_packages
from nestor.corpus.packages.package_build import PackageLimits
from nestor.corpus.packages.sources import Provider
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.evaluate.copies.overlap import Compiled
from nestor.evaluate.copies.shared_code import hashes_of, read_hashes, shared_code, write_hashes
from nestor.evaluate.result import Evaluation
from nestor.files import write_atomically
from nestor.problem.problem import Pool
from nestor.rollout.cache import baselines
from nestor.rollout.local_pool import PoolSettings
from nestor.temporary import temporary_folder

POLICIES: Final = ("threshold:15", "threshold:25", "mlgo2020", "shipped", "distilled")
WITH_SUMMARY: Final = ("distilled",)
"""Of the policies, those that are judged with a summary of the program too."""
MODES: Final = ("gc", "no-gc", "icf")
_COMPILE_SECONDS: Final = 600.0
"""A compile that takes longer has failed: long, as the machine may be busy with other things."""
_PLACES: Final = re.compile(r" *\[IP: [^]]*\]|https?://[^/\s]+|/\S*/unpacked/source/")
"""What a message says about this machine: a mirror's address, a temporary folder."""


@dataclass(frozen=True)
class Wanted:
    """One package to judge."""

    name: str
    language: str
    half: str


def wanted(options: argparse.Namespace) -> list[Wanted]:
    """Return the packages of each draw in its order, the draws in turns, of one half if chosen."""
    if options.package:
        return [Wanted(name, options.language, "") for name in options.package]
    draws = [json.loads(path.read_text())["packages"] for path in options.draw]
    turns = chain.from_iterable(zip_longest(*draws))
    packages = [Wanted(p["name"], p["language"], p["half"]) for p in turns if p is not None]
    return [p for p in packages if options.half in ("both", p.half)]


def lines_of(results: Path) -> list[dict[str, Any]]:
    """Return what has been measured, a dictionary a package."""
    files = sorted(results.glob("*.jsonl")) if results.is_dir() else [results]
    return [line for file in files for line in record.json_lines(file)]


@functools.cache
def digests(policies: tuple[str, ...]) -> dict[str, str]:
    """Return what tells the policies apart from others of the same name."""
    return {name: policy_named(name).digest[:12] for name in policies}


def again(line: dict[str, Any], options: argparse.Namespace) -> bool:
    """Tell whether a package is to be judged again: for its failure, or for new policies."""
    reasons = {failure["reason"] for failure in line["failures"]}
    if line["programs"]:
        if options.incomplete and not _complete(line):
            return True
        known = line.get("policies", {})
        now = digests(tuple(options.policies))
        return bool(options.changed) and any(known.get(x) != now[x] for x in now)
    return not reasons.isdisjoint(options.again)


def _complete(line: dict[str, Any]) -> bool:
    """Tell whether every program of a package was built under every policy in every mode."""
    changes = [change for program in line["programs"] for change in program["change"].values()]
    return all(pair is not None for change in changes for pair in change.values())


def judge(
    package: Wanted,
    options: argparse.Namespace,
    seen: frozenset[str] | None,
    provider: Provider,
) -> dict[str, Any]:
    """Return the line of one package."""
    began = time.monotonic()
    found = toolchains.find()
    with temporary_folder("judge") as name:
        settings = PackageSettings(
            limits=PackageLimits(options.minutes, options.gigabytes), logs=options.logs
        )
        root = (options.corpora or Path(name)) / package.name
        fetched = fetch_packages([package.name], root, found, settings, provider=provider)
        captured = time.monotonic()
        corpus = fetched.corpus
        line: dict[str, Any] = {
            "package": package.name,
            "language": package.language,
            "half": package.half,
            "version": corpus.projects[0].version if corpus.projects else "",
            "failures": [_failure(failure) for failure in fetched.failures],
            "modules": len(corpus.modules),
            "programs": [],
            "policies": digests(tuple(options.policies)),
            "machine": describe(found),
            "capture_seconds": round(captured - began, 1),
        }
        if corpus.programs and not options.fetch_only:
            line["programs"] = _programs(corpus, options.policies, options.programs, seen)
        line["judge_seconds"] = round(time.monotonic() - captured, 1)
    return line


def _failure(failure: Failure) -> dict[str, Any]:
    detail = _PLACES.sub("", failure.detail)
    return {"reason": failure.reason, "detail": detail, "partial": failure.partial}


def _programs(
    corpus: Corpus, names: Sequence[str], most: int, seen: frozenset[str] | None
) -> list[dict[str, Any]]:
    """Return what each of the programs with the most modules comes to."""
    programs = sorted(corpus.programs, key=lambda p: (-len(p.modules), p.name))[:most]
    with local_pool(corpus, PoolSettings(timeout=_COMPILE_SECONDS)) as pool:
        policies = [policy_named(name) for name in names]
        summarised = [policy_named(name) for name in names if name in WITH_SUMMARY]
        plain = evaluate(pool, LINK, programs, policies, EvaluateSettings(MODES, log=False))
        summary = EvaluateSettings(MODES, summary=True, log=False)
        with_summary = evaluate(pool, LINK, programs, summarised, summary)
        shares = {p.name: _share(pool, corpus, p, seen) for p in programs}
    for failure in {failure for one in (*plain, *with_summary) for failure in one.failures}:
        print(f"{failure.what}, {failure.side}: {failure.reason}", file=sys.stderr)
    named = [(one.policy, one) for one in plain]
    named += [(f"{one.policy} with summary", one) for one in with_summary]
    return [
        {
            "name": program.name,
            "language": _language(corpus, program),
            "modules": len(program.modules),
            "foreign": sum(item.kind == "foreign" for item in program.inputs),
            "shared_pct": shares[program.name],
            "stock": _stock(program, [one for _, one in named]),
            "change": _changes(program, named),
        }
        for program in programs
    ]


def _language(corpus: Corpus, program: Program) -> str:
    """Return the language of a program: some of C++ are linked by the driver of C."""
    languages = {corpus.module(name).language for name in program.modules}
    return "c++" if "c++" in {program.language, *languages} else "c"


def _share(
    pool: Pool, corpus: Corpus, program: Program, seen: frozenset[str] | None
) -> float | None:
    if seen is None:
        return None
    objects = baselines(pool, [corpus.module(name) for name in program.modules], None)
    return round(shared_code(objects.values(), seen).pct, 2)


def _stock(program: Program, results: Sequence[Evaluation]) -> dict[str, dict[str, float]]:
    """Return the columns of the stock program by mode."""
    return {
        result.mode: dict(row.stock.columns)
        for result in results
        for row in result.programs
        if row.name == program.name and row.stock is not None
    }


def _changes(
    program: Program, results: Sequence[tuple[str, Evaluation]]
) -> dict[str, dict[str, list[float] | None]]:
    """Return the changes of linked bytes and of code in per cent, by policy and mode."""
    changes: dict[str, dict[str, list[float] | None]] = {}
    for policy, result in results:
        for row in result.programs:
            if row.name == program.name:
                pair = (row.column_change_pct("linked"), row.column_change_pct("text"))
                whole = [round(x, 4) for x in pair if x is not None]
                changes.setdefault(policy, {})[result.mode] = whole if len(whole) == 2 else None
    return changes


def merged(earlier: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """Return a package's earlier line with what the new one says of the policies judged anew.

    The earlier line stays as it is where the programs are others by now, or cannot be built.
    """
    if not earlier["programs"]:
        return line
    stock = {p["name"]: p["stock"] for p in earlier["programs"]}
    if stock != {p["name"]: p["stock"] for p in line["programs"]}:
        print(f"{line['package']}: other stock programs, the earlier line stays", file=sys.stderr)
        return earlier
    found = {p["name"]: p["change"] for p in line["programs"]}
    programs = [p | {"change": p["change"] | found[p["name"]]} for p in earlier["programs"]]
    return earlier | {
        "programs": programs,
        "policies": earlier.get("policies", {}) | line.get("policies", {}),
        "machine": line.get("machine", {}),
    }


def run_judge(options: argparse.Namespace) -> int:
    """Judge the packages that have no line yet; one line is kept after each."""
    seen = read_hashes(options.seen) if options.seen else None
    until = time.monotonic() + 60 * options.budget
    left = options.count
    with temporary_folder("apt") as name:
        provider = Provider(Path(name))
        for package in wanted(options):
            place = options.results / f"{package.language.replace('+', 'x')}.jsonl"
            before = lines_of(place) if place.exists() else []
            earlier = next((x for x in before if x["package"] == package.name), None)
            if earlier is not None and not again(earlier, options):
                continue
            if time.monotonic() > until or left == 0:
                break
            left -= 1
            line = judge(package, options, seen, provider)
            if options.fetch_only and line["modules"]:
                print(f"{package.name}: {line['modules']} modules", flush=True)
                continue
            if earlier is None:
                lines = [*before, line]
            else:
                lines = [merged(earlier, line) if x is earlier else x for x in before]
            write_atomically(place, "".join(f"{json.dumps(one)}\n" for one in lines))
            reasons = ", ".join(failure["reason"] for failure in line["failures"])
            print(f"{package.name}: {len(line['programs'])} programs {reasons}", flush=True)
    return 0


def run_hashes(options: argparse.Namespace) -> int:
    """Write the hashes of all functions of the projects for training and validation."""
    corpus = store.load(options.corpus)
    with local_pool(corpus) as pool:
        objects = baselines(pool, corpus.modules, None)
        write_hashes(options.seen, hashes_of([Compiled(corpus, objects)]))
    return 0


def run_table(options: argparse.Namespace) -> int:
    """Print the tables, and write them to a result file if one is named."""
    lines = lines_of(options.results)
    found = tables(lines, options.half, options.least_bytes)
    about = (
        "Packages drawn at random from Debian, built as Debian builds them: change of the linked"
        f" program against stock -Oz, programs of at least {options.least_bytes} bytes that share"
        f" at most {LARGEST_SHARE_PCT:g} % of their code with training."
    )
    record.publish(options.json, about, found)
    return 0


def main() -> int:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    steps = parser.add_subparsers(required=True)
    one = steps.add_parser("judge", help="fetch and evaluate packages")
    one.add_argument("draw", type=Path, nargs="*", help="draws as JSON, which take turns")
    one.add_argument("--package", nargs="+", default=[], help="packages instead of a draw")
    one.add_argument("--language", choices=("c", "c++"), default="c++", help="of --package")
    one.add_argument("--half", choices=("development", "final", "both"), default="development")
    one.add_argument("--results", type=Path, default=Path("benchmarks/results/sample"))
    one.add_argument("--seen", type=Path, help="hashes of what training has seen")
    one.add_argument("--programs", type=int, default=6, help="most programs of a package")
    one.add_argument("--policies", nargs="+", default=list(POLICIES), help="that are judged")
    one.add_argument("--count", type=int, default=-1, help="most packages; all without it")
    one.add_argument("--minutes", type=float, default=20.0, help="longest build")
    one.add_argument("--gigabytes", type=float, default=4.0, help="largest build")
    one.add_argument("--budget", type=float, default=1e9, help="minutes; none is begun after them")
    one.add_argument(
        "--again", nargs="+", default=[], choices=REASONS, help="try what failed for these reasons"
    )
    one.add_argument(
        "--changed",
        action="store_true",
        help="judge again what was judged under other files of --policies; other policies stay",
    )
    one.add_argument(
        "--incomplete", action="store_true", help="judge again what was not built in every way"
    )
    one.add_argument(
        "--corpora", type=Path, help="folder to keep what was fetched in, a corpus a package"
    )
    one.add_argument(
        "--fetch-only", action="store_true", help="fetch into --corpora, and judge another time"
    )
    one.add_argument("--logs", type=Path, help="folder for the output of the builds")
    one.set_defaults(run=run_judge)
    two = steps.add_parser("hashes", help="write what training has seen")
    two.add_argument("corpus", type=Path)
    two.add_argument("--seen", type=Path, required=True)
    two.set_defaults(run=run_hashes)
    three = steps.add_parser("table", help="print what was measured")
    three.add_argument("results", type=Path)
    three.add_argument("--half", choices=("development", "final", "both"), default="both")
    three.add_argument("--least-bytes", type=int, default=10_000)
    three.add_argument("--json", type=Path)
    three.set_defaults(run=run_table)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
