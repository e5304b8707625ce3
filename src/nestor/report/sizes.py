"""Two builds of the same programs: what became larger, and which decisions changed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nestor.change import change_pct
from nestor.compiler.objects import Measure


@dataclass(frozen=True)
class Decided:
    """One decision of a build."""

    caller: str
    callee: str
    answer: str
    """In the words of a file of overrides."""


Decisions = Mapping[tuple[str, str], Decided]
"""By module and site, which do not depend on other decisions nor on unrelated edits."""


@dataclass(frozen=True)
class SizedBuild:
    """One build: its linked programs, or its objects if there are no programs."""

    files: Mapping[str, Measure]
    """By the path in the build."""
    decisions: Decisions | None = None
    """None if they are not recorded."""


@dataclass(frozen=True)
class FileChange:
    """A program or object; a side on which it does not exist is None."""

    name: str
    before: int | None
    """Loadable bytes."""
    after: int | None
    text_before: int
    text_after: int

    @property
    def percent(self) -> float | None:
        """The change in per cent; None if one of the builds does not have it."""
        if self.before is None or self.after is None:
            return None
        return change_pct(self.before, self.after)


@dataclass(frozen=True)
class FunctionChange:
    """A function of a file that both builds have; 0 where it does not exist."""

    file: str
    name: str
    before: int
    """Bytes of code, unwind entry and exception table."""
    after: int

    @property
    def change(self) -> int:
        """Bytes more."""
        return self.after - self.before


@dataclass(frozen=True)
class DecisionChange:
    """A decision that both builds took, and took differently."""

    module: str
    site: str
    caller: str
    callee: str
    before: str
    after: str


@dataclass(frozen=True)
class SizeCheck:
    """The comparison of two builds."""

    files: tuple[FileChange, ...]
    """Those that grew most first; then those of one build alone."""
    functions: tuple[FunctionChange, ...]
    """Those that changed, the largest growth first."""
    decisions: tuple[DecisionChange, ...] | None
    """None unless both builds have decisions."""
    compared_decisions: int
    only_before: int
    """Decisions of the base that the head does not take."""
    only_after: int

    @property
    def before(self) -> int:
        """Loadable bytes of the files that both builds have."""
        return sum(f.before for f in self.files if f.before is not None and f.after is not None)

    @property
    def after(self) -> int:
        """The same in the head."""
        return sum(f.after for f in self.files if f.before is not None and f.after is not None)

    @property
    def percent(self) -> float:
        """The change of all files together, in per cent."""
        return change_pct(self.before, self.after)

    def beyond(self, limit: float) -> tuple[str, ...]:
        """Return the files that grew by more than ``limit`` per cent."""
        return tuple(
            f.name for f in self.files if f.percent is not None and f.percent > limit + 1e-9
        )


def compare_sizes(base: SizedBuild, head: SizedBuild) -> SizeCheck:
    """Compare two builds, files and functions by name and decisions by site."""
    names = dict.fromkeys((*base.files, *head.files))
    files = [_file(name, base.files.get(name), head.files.get(name)) for name in names]
    files.sort(key=lambda f: (f.percent is None, -(f.percent or 0.0), f.name))
    functions = [
        change
        for name in names
        if name in base.files and name in head.files
        for change in _functions(name, base.files[name], head.files[name])
    ]
    functions.sort(key=lambda f: (-f.change, f.file, f.name))
    before, after = base.decisions, head.decisions
    if before is None or after is None:
        return SizeCheck(tuple(files), tuple(functions), None, 0, 0, 0)
    both = [key for key in before if key in after]
    changed = [
        DecisionChange(*key, after[key].caller, after[key].callee, b.answer, after[key].answer)
        for key in both
        if (b := before[key]).answer != after[key].answer
    ]
    grown = {f.name: f.change for f in functions}
    changed.sort(key=lambda d: (-grown.get(d.caller, 0), d.module, d.caller, d.site))
    only_before, only_after = len(before) - len(both), len(after) - len(both)
    return SizeCheck(
        tuple(files), tuple(functions), tuple(changed), len(both), only_before, only_after
    )


def _file(name: str, before: Measure | None, after: Measure | None) -> FileChange:
    return FileChange(
        name,
        None if before is None else before.loadable,
        None if after is None else after.loadable,
        0 if before is None else before.text,
        0 if after is None else after.text,
    )


def _functions(name: str, before: Measure, after: Measure) -> Iterable[FunctionChange]:
    old, new = _by_name(before), _by_name(after)
    for function in dict.fromkeys((*old, *new)):
        change = FunctionChange(name, function, old.get(function, 0), new.get(function, 0))
        if change.change:
            yield change


def _by_name(measure: Measure) -> dict[str, int]:
    """Return bytes by symbol; static functions of one name are summed up."""
    found: defaultdict[str, int] = defaultdict(int)
    for function in measure.functions:
        found[function.name] += function.size
    return found
