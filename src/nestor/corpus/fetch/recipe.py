"""What a recipe is: pinned sources of a project and the commands that build it, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nestor.corpus.fetch.inputs import InputSource
from nestor.corpus.level import Level
from nestor.corpus.model import Split, Workload


@dataclass(frozen=True)
class TierContent:
    """What a tier is made of."""

    projects: tuple[str, ...]
    """Names of recipes, each once, in the order in which they are built."""
    level: Level
    """The level of optimisation unless the user wants another."""
    workloads: bool = False
    """Take of each project only the programs that have a workload, and the modules of these."""


@dataclass(frozen=True)
class Step:
    """One command of a build, run in ``folder``, relative to the sources.

    ``@CC@``, ``@CXX@`` and ``@JOBS@`` in a word become the wrappers and the number of jobs.
    Configure steps are not captured (``capture=False``): the wrapper is then a plain compiler.
    """

    command: tuple[str, ...]
    capture: bool = True
    folder: str = "."


@dataclass(frozen=True)
class Recipe:
    """A project: what to fetch, how to build it, which programs to keep."""

    project: str
    package: str
    """The source package of the Debian archive."""
    version: str
    sources: Mapping[str, str]
    """The upstream tarball and its sha256, which is checked after apt's own signatures."""
    licence: str
    steps: tuple[Step, ...]
    programs: Mapping[str, tuple[str, ...]]
    """Files that the build links, and the arguments of a short run of each that does some real work
    and succeeds (none: not to be run); see :func:`nestor.corpus.smoke.prepare`."""
    split: Split = "train"
    style: str = ""
    """How the code is written, in a few words; ``C: `` first if it is in C."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Names of files that such a run finds beside it, and where they lie in the sources, once
    built."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """The workloads of programs, by the built file. If there are any, ``programs`` has no others
    and only the modules that these link are taken."""
    workload_inputs: Mapping[str, InputSource] = field(default_factory=dict)
    """Names of the files that the runs of the workloads find beside them, and their source."""
