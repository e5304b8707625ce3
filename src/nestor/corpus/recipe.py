"""What a recipe is: pinned sources of a project and the commands that build it, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from nestor.corpus.model import Split


@dataclass(frozen=True)
class Step:
    """One command of a build, run in ``folder`` of the sources, below the build's own names.

    ``@CC@``, ``@CXX@`` and ``@JOBS@`` in a word become the wrappers and the number of jobs.
    Configure steps are not captured (``capture=False``): the wrapper is then a plain compiler.
    """

    command: tuple[str, ...]
    capture: bool = True
    folder: str = "."


@dataclass(frozen=True)
class Recipe:
    """A project: what to fetch, how to build it, which programs to keep.

    ``sources`` maps the upstream tarball to its sha256, checked after apt's own signatures.
    ``programs`` maps built files to arguments of a short run that does some real work and
    succeeds (none: not to be run); see :func:`nestor.corpus.smoke.prepare`. ``inputs`` maps the
    names of files that such a run finds beside it to where they lie in the sources, once built.
    ``style`` says in a few words how the code is written.
    """

    project: str
    package: str
    version: str
    sources: Mapping[str, str]
    licence: str
    steps: tuple[Step, ...]
    programs: Mapping[str, tuple[str, ...]]
    split: Split = "train"
    style: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)


def recipe(
    project: str,
    version: str,
    tarball: tuple[str, str],
    licence: str,
    split: Split,
    style: str,
    steps: tuple[Step, ...],
    programs: Mapping[str, tuple[str, ...]],
    package: str = "",
    inputs: Mapping[str, str] | None = None,
) -> Recipe:
    """Return the recipe of a project with one tarball, in a package of its own name by default."""
    return Recipe(
        project, package or project, version, dict([tarball]), licence, steps, programs, split,
        style, inputs or {},
    )  # fmt: skip


def run(*words: str) -> Step:
    """Return a captured step."""
    return Step(words)


def configure(*words: str) -> Step:
    """Return a step that looks at the machine and is not captured."""
    return Step(words, capture=False)


def example(file: str, *options: str, libraries: tuple[str, ...] = ()) -> tuple[Step, Step]:
    """Return the steps that build one C++ file to a program of its name, in the top folder."""
    name = PurePosixPath(file).stem
    return (
        run("@CXX@", *options, "-c", file, "-o", f"{name}.o"),
        run("@CXX@", f"{name}.o", *libraries, "-o", name),
    )


def cmake(*settings: str, source: str = ".") -> Step:
    """Return the step that configures with CMake into the folder ``build``, static and release."""
    return configure(
        "cmake", "-S", source, "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        # Only the bitcode is kept, and that is made at -Oz: build the rest as fast as possible.
        "-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG", "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG",
        # Without the old default -rdynamic, which keeps everything alive at link time.
        "-DCMAKE_POLICY_DEFAULT_CMP0065=NEW",
        "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", *settings,
    )  # fmt: skip


def ninja(*targets: str) -> Step:
    """Return the step that builds ``targets`` in the folder ``build``."""
    return run("ninja", "-C", "build", "-j@JOBS@", *targets)


TONE = configure(
    "perl", "-e",
    r"""
    my $n = 4 * 44100;
    open my $f, ">:raw", "tone.wav" or die;
    print $f pack("a4Va4a4VvvVVvva4V", "RIFF", 36 + 2 * $n, "WAVE", "fmt ", 16, 1, 1, 44100,
                  88200, 2, 16, "data", 2 * $n);
    print $f pack("s<", 9000 * sin(0.02 * $_ * (1 + $_ / $n))) for 1 .. $n;
    close $f or die;
    """,
)  # fmt: skip
"""Writes four seconds of a rising tone, ``tone.wav``, for sources without a sound of their own."""
