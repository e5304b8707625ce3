"""The nouns of a corpus: modules, programs, projects.

A corpus is immutable once loaded. Everything in it is data that may come from a stranger: names
stay inside the folder, and options passed the allow-lists of :mod:`nestor.compiler.options`.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, get_args

from nestor.compiler.profile_option import profile_of, profile_path
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.errors import NestorError

Split = Literal["train", "validation", "test"]
InputKind = Literal["module", "foreign", "option"]

NO_MODULES: Final = "none of its code comes from a module, so there is nothing to compare"
"""Why a binary of assembly or prebuilt objects alone is no program of a corpus."""

SPLITS: tuple[Split, ...] = get_args(Split)


class CorpusError(NestorError):
    """A corpus that cannot be used; the text says what to do."""


@dataclass(frozen=True)
class Module:
    """One translation unit before optimisation, with everything the back end needs to know.

    ``name`` is ``project/path.o``; the files are ``<name>.bc`` and ``<name>.cmd``. ``language``
    is ``"c"`` or ``"c++"``. ``digest`` is the sha256 of the bitcode. ``options`` is a cc1 line
    without input and output: ``clang <options> -x ir X.bc -o X.o`` makes the object. A profile that
    it names (``-fprofile-use``) lies beside the bitcode, as ``<sha256>.profdata``.
    """

    name: str
    project: str
    language: str
    digest: str
    options: tuple[str, ...]

    @property
    def profile(self) -> str | None:
        """The sha256 of the profile that the module is compiled with, None without one."""
        return profile_of(self.options)


@dataclass(frozen=True)
class Input:
    """One item of a link line: a module by name, a foreign object by sha256, or an option.

    The members of a static library stand between ``-Wl,--start-lib`` and ``-Wl,--end-lib``: the
    linker takes of them only what it needs.
    """

    kind: InputKind
    value: str


Arguments = tuple[str, ...]
"""Those of a run, as :func:`nestor.corpus.smoke.prepare` takes them."""


@dataclass(frozen=True)
class Workload:
    """Runs of one program that each do about as much work as a user's run would.

    They read different inputs: a profile of the run that is measured would flatter what is made
    with it.
    """

    measure: Arguments
    """The run whose instructions or time are measured."""
    profile: tuple[Arguments, ...] = ()
    """The runs of which a profile is collected, and that searches see: they count together."""

    def __post_init__(self) -> None:
        """Check the runs.

        :raises ValueError: if one is empty, or measured and a run for profiles.
        """
        if not self.measure or not all(self.profile):
            raise ValueError("a run has no arguments; write '<' alone for a run without any")
        if self.measure in self.profile:
            raise ValueError("the measured run is a run for profiles, too")

    @property
    def each(self) -> tuple[Arguments, ...]:
        """All runs."""
        return (self.measure, *self.profile)

    def runs(self, mode: str) -> tuple[Arguments, ...]:
        """Return the runs of a kind, ``measure`` or ``profile``."""
        return (self.measure,) if mode == "measure" else self.profile


def runs_of(value: object) -> tuple[Arguments, ...]:
    """Return the runs that a list names: lists of arguments, or the arguments of a single one.

    :raises ValueError: if it is neither.
    """
    if not isinstance(value, list):
        raise ValueError("runs must be a list of arguments, or a list of such lists")
    each = value if value and all(isinstance(run, list) for run in value) else [value]
    if not all(isinstance(word, str) and "\0" not in word for run in each for word in run):
        raise ValueError("the arguments of a run must be texts")
    return tuple(tuple(run) for run in each if run or len(each) > 1)


@dataclass(frozen=True)
class Program:
    """One binary of a project and the link line that makes it.

    ``language`` (``"c"`` or ``"c++"``) decides between clang and clang++. ``smoke`` are
    arguments of a short, successful run (see :func:`nestor.corpus.smoke.prepare`); empty if there
    is no such run. ``workload`` are its longer runs, None if it has none.
    """

    name: str
    project: str
    language: str
    inputs: tuple[Input, ...]
    smoke: tuple[str, ...] = ()
    workload: Workload | None = None

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules, in link order, each once (some may not be pulled in)."""
        return tuple(dict.fromkeys(i.value for i in self.inputs if i.kind == "module"))


@dataclass(frozen=True)
class Project:
    """Where modules come from. ``sources`` maps file names to their sha256.

    ``style`` says in a few words how the code is written. ``inputs`` are the files that programs
    read in a smoke test or a workload: name and sha256, each once.
    """

    name: str
    version: str = ""
    licence: str = ""
    sources: tuple[tuple[str, str], ...] = ()
    split: Split = "train"
    recipe: str = ""
    """Digest of the recipe that built it; a project with another recipe is fetched again."""
    dropped_options: int = 0
    """Recorded options that were left out because nobody vouches for them."""
    style: str = ""
    inputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Missing:
    """A project, or a part of one, that could not be built or captured, with a short reason."""

    project: str
    reason: str


@dataclass(frozen=True)
class Corpus:
    """All of a corpus: the folder ``root`` and what lies in it, in order of name.

    ``toolchain`` is the version of the compiler that made it, ``level`` the optimisation level at
    which its modules were made.
    """

    root: Path
    modules: tuple[Module, ...] = ()
    programs: tuple[Program, ...] = ()
    projects: tuple[Project, ...] = ()
    missing: tuple[Missing, ...] = ()
    toolchain: str = ""
    level: Level = DEFAULT_LEVEL

    @cached_property
    def by_name(self) -> dict[str, Module]:
        """Every module by its name."""
        return {module.name: module for module in self.modules}

    @cached_property
    def dropped_options(self) -> int:
        """Recorded options that were left out, over all projects."""
        return sum(project.dropped_options for project in self.projects)

    @cached_property
    def splits(self) -> dict[str, Split]:
        """The split of every project by its name."""
        return {project.name: project.split for project in self.projects}

    def module(self, name: str) -> Module:
        """Return the module ``name``; raises :class:`CorpusError` if there is none."""
        try:
            return self.by_name[name]
        except KeyError:
            raise CorpusError(
                f"The corpus {self.root} has no module {name}; 'nestor corpus info --modules' lists"
                " them."
            ) from None

    def program(self, name: str) -> Program:
        """Return the program ``name``; raises :class:`CorpusError` if there is none."""
        for program in self.programs:
            if program.name == name:
                return program
        raise CorpusError(
            f"The corpus {self.root} has no program {name}; 'nestor corpus info' lists them."
        )

    def modules_of(self, split: Split) -> tuple[Module, ...]:
        """Return the modules whose project is in ``split``."""
        return tuple(m for m in self.modules if self.splits.get(m.project, "train") == split)

    def programs_of(self, split: Split) -> tuple[Program, ...]:
        """Return the programs whose project is in ``split``."""
        return tuple(p for p in self.programs if self.splits.get(p.project, "train") == split)

    def project(self, name: str) -> Project:
        """Return the project ``name``; raises :class:`CorpusError` if there is none."""
        for project in self.projects:
            if project.name == name:
                return project
        raise CorpusError(
            f"The corpus {self.root} has no project {name}; 'nestor corpus info' lists them."
        )

    def programs_of_project(self, project: str) -> tuple[Program, ...]:
        """Return the programs of one project."""
        return tuple(p for p in self.programs if p.project == project)

    def bitcode(self, module: Module) -> Path:
        """Return the module's bitcode file."""
        return self.root / f"{module.name}.bc"

    def command(self, module: Module) -> Path:
        """Return the module's file of NUL-separated cc1 options."""
        return self.root / f"{module.name}.cmd"

    def profile(self, module: Module) -> Path | None:
        """Return the profile that the module is compiled with, beside its bitcode."""
        digest = module.profile
        return None if digest is None else profile_path(self.bitcode(module), digest)

    @cached_property
    def profiles(self) -> dict[Path, str]:
        """The profiles that modules are compiled with, each with its sha256."""
        return {
            path: module.profile
            for module in self.modules
            if module.profile and (path := self.profile(module))
        }

    def foreign(self, digest: str) -> Path:
        """Return the file of a foreign object."""
        return self.root / "foreign" / f"{digest}.o"

    def input(self, digest: str) -> Path:
        """Return a file that programs read in a smoke test or a workload."""
        return self.root / "inputs" / digest

    @cached_property
    def is_codegen(self) -> bool:
        """Whether the modules are what the middle end gives to code generation.

        Their command lines say so: the compiler is to run no pass of the middle end again.
        """
        return any("-disable-llvm-passes" in module.options for module in self.modules)

    @cached_property
    def digest(self) -> str:
        """One sha256 for modules, options, programs and splits; the folder plays no part.

        The level has no entry of its own: it is among the modules' options.
        """
        content = {
            "modules": [[m.name, m.language, m.digest, m.options] for m in self.modules],
            "programs": [
                [p.name, p.language, [[i.kind, i.value] for i in p.inputs]] for p in self.programs
            ],
            "splits": sorted(self.splits.items()),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def require_level(corpus: Corpus, level: Level) -> None:
    """Refuse a corpus whose modules were made at another level than ``level``.

    :raises CorpusError: with how to make a corpus at that level.
    """
    if corpus.level != level:
        raise CorpusError(
            f"The corpus {corpus.root} was captured at {corpus.level} and {level} is needed: "
            f"fetch or capture another one with --level {level}."
        )
