"""``nestor report``: a page to look at what policies decide in a program."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import tyro
from rich.markup import escape

from nestor.change import change_pct
from nestor.cli.console import counted, percent, print_json, stdout
from nestor.cli.options import OutputFile
from nestor.cli.policies.builds import overrides_text
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_pool
from nestor.compiler.demangle import demangle
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings

_SCHEMES: Final = ("https://", "http://", "file://", "vscode://")


@dataclass(frozen=True)
class Report:
    r"""Write a page that shows every decision of a policy in a program, and what it cost or saved.

    One HTML file with all data in it: it needs no server and no network, and can be mailed or kept
    with a build. It shows the program by modules and functions before and after, every decision
    with its features, and what is put down to it: the change of the functions that it can reach,
    shared among the decisions that left the default there. --measure N instead compiles modules
    again, each with one of the N largest decisions left to the default. Click decisions to
    collect overrides, and copy or save the file.

    Of a corpus that was captured with --lines, calls and functions stand with their places in the
    source, and --source makes links of them.

    With --against a second policy stands beside the first. For a policy about register allocation,
    name its --problem. For one about inlining for speed the program is run: functions stand with
    what they execute on the input that searches see.

    Examples:
        nestor report ninja --corpus corpus/bench --policy shipped --out ninja.html
        nestor report lz4 --corpus corpus/tiny --policy shipped --against mlgo2020 --out lz4.html
        nestor report lua --corpus corpus/bench --policy my.safetensors --measure 50 --out lua.html
        nestor report lua --corpus corpus/speed --problem inlining-speed --policy default \
            --overrides tuned/lua/overrides.txt --out lua.html
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    policy: str
    """A policy file or a built-in."""
    out: OutputFile
    """The page to write."""
    overrides: Path | None = None
    """Answers that stand above the policies', such as what 'nestor tune' has found."""
    against: str | None = None
    """A second policy to set beside the first."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policies decide."""
    measure: int = 0
    """Of each policy, how many decisions to measure one by one, the largest first."""
    summary: bool = False
    """Give policies that read one a summary of the rest of the program."""
    source: str | None = None
    """Link places to the source: its folder, or an address with {file} and {line}."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compile the program under every policy and write the page."""
        from nestor.report.page import page
        from nestor.report.sides import compile_sides
        from nestor.report.tables import page_data

        problem = find_problem(self.problem)
        names = (self.policy,) if self.against is None else (self.policy, self.against)
        policies = [problem.policy(name) for name in names]
        overrides = overrides_text(problem, self.overrides)
        source = "" if self.source is None else _address(self.source)
        corpus = corpus_for(problem, self.corpus, policies)
        program = program_named(corpus, self.program)
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            sides = compile_sides(
                pool,
                program,
                policies,
                overrides=overrides,
                summary=self.summary,
                measure=self.measure,
                progress=report,
            )
        symbols = {
            name
            for side in sides.all
            for module in side.modules.values()
            for name in (*module.parts, *module.trajectory.names.values())
            if name.isprintable()  # a log may hold anything
        }
        readable = demangle(pool.plugin.toolchain, sorted(symbols))
        data, pack = page_data(problem, sides, readable, source)
        text = page(data, pack)
        write_atomically(self.out, text)
        decisions = [sum(len(m.trajectory) for m in s.modules.values()) for s in sides.policies]
        if self.json:
            print_json(
                {
                    "program": sides.program,
                    "out": str(self.out),
                    "bytes": len(text.encode()),
                    "modules": data["modules"]["rows"],
                    "functions": data["functions"]["rows"],
                    "policies": [
                        {"policy": side.policy.name, "decisions": count, **side.columns}
                        for side, count in zip(sides.policies, decisions, strict=True)
                    ],
                    "default": dict(sides.default.columns),
                }
            )
            return 0
        score = problem.report.score
        before = sides.default.columns[score]
        for side, count in zip(sides.policies, decisions, strict=True):
            change = change_pct(before, side.columns[score])
            stdout.print(
                f"{escape(side.policy.name)}: {counted(count, 'decision')},"
                f" {score} {percent(change)}"
            )
        stdout.print(f"{escape(str(self.out))}: {len(text.encode()):,} bytes", soft_wrap=True)
        return 0


def _address(source: str) -> str:
    """Return the address of a line of the source, with ``{file}`` and ``{line}``.

    :raises NestorError: if it is neither a folder nor such an address.
    """
    if "{file}" in source:
        if source.startswith(_SCHEMES):
            return source
        raise NestorError(f"'{source}' must begin with one of {', '.join(_SCHEMES)}.")
    if not Path(source).is_dir():
        raise NestorError(f"'{source}' is no folder, and no address with {{file}} and {{line}}.")
    return Path(source).resolve().as_uri() + "/{file}"
