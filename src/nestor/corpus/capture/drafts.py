"""From a journal of captures to the projects that it holds: choose modules, name them, link."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from nestor.compiler.options import is_safe_link_option, safe_cc1
from nestor.corpus.capture.journal import Journal
from nestor.corpus.model import (
    NO_MODULES,
    Corpus,
    Input,
    Missing,
    Module,
    Program,
    Project,
    Workload,
)

_SAMPLE_PROFILE: Final = "-fprofile-sample-use="
_WITHOUT_SAMPLES: Final = (
    "modules that the build compiled with a sample profile (-fprofile-sample-use) are without one "
    "here, since a corpus keeps none: {}"
)


@dataclass(frozen=True)
class Selection:
    """What to take from a journal for one project.

    ``programs`` maps the names of built files to smoke arguments; None takes every program.
    ``workloads`` maps such names to workloads. With ``linked_only`` the modules that no program
    links are left out.
    """

    project: Project
    programs: Mapping[str, tuple[str, ...]] | None = None
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    linked_only: bool = False


@dataclass
class Draft:
    """One project while it is being put together; modules by object key."""

    selection: Selection
    modules: dict[str, Module] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    dropped: int = 0


def draft_projects(
    journal: Journal, selections: Mapping[str, Selection], old: Corpus
) -> list[Draft]:
    """Return every project that ``journal`` has anything of, in order of name.

    A project without a selection keeps what the corpus ``old`` says about it: its split, style and
    licence, and the smoke tests of its programs.
    """
    compiles: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for key, event in journal.compiles():
        compiles[event["project"]][key] = event
    links: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in journal.links():
        links[event["project"]][event["program"]] = event  # The last link of a file wins.
    failures = _failures(journal, compiles)
    names = sorted({*compiles, *links})
    chosen = {name: selections.get(name, Selection(_as_before(old, name))) for name in names}
    before = {program.name: program for program in old.programs}
    built = {
        name: {p: e for p, e in links[name].items() if _is_selected(p, chosen[name].programs)}
        for name in names
    }
    needed = {
        value
        for events in built.values()
        for event in events.values()
        for kind, value in event["tokens"]
        if kind == "object"
    }
    found = [_with_modules(chosen[name], compiles[name], needed) for name in names]
    every = {key: module for draft in found for key, module in draft.modules.items()}
    for name, draft in zip(names, found, strict=True):
        ours = built[name]
        _add_programs(draft, ours, every, before if draft.selection.programs is None else {})
        draft.missing += [
            Missing(name, f"{what}: {reason}")
            for what, reason in sorted(failures[name].items())
            if what not in ours and _is_selected(what, draft.selection.programs)
        ]
    return found


def _as_before(old: Corpus, name: str) -> Project:
    """Return what stays true of a project when its build is captured again."""
    before = next((p for p in old.projects if p.name == name), Project(name))
    return Project(
        name, licence=before.licence, split=before.split, style=before.style, inputs=before.inputs
    )


def last_compiles(journal: Journal) -> list[dict[str, Any]]:
    """Return the last compilation of each object, project by project."""
    compiles: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for key, event in journal.compiles():
        compiles[event["project"]][key] = event
    return [events[key] for events in compiles.values() for key in _newest(events).values()]


def left_out(compiles: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the options of compilations that no corpus replays, each with its number of them."""
    found: Counter[str] = Counter()
    for event in compiles:
        found.update(dict.fromkeys(safe_cc1(event["arguments"]).left_out, 1))
    return found


def of_the_build(compiles: Iterable[Mapping[str, Any]], what: str) -> Counter[str]:
    """Return what the build's own commands asked for, each with its number of compilations.

    Older journals do not say.

    :param what: ``level`` or ``lto``; of LTO, nothing stands for none.
    """
    return Counter(event[what] for event in compiles if what in event)


def lost_projects(journal: Journal, captured: Set[str]) -> list[Missing]:
    """Return the failures of projects of which nothing at all was captured."""
    failures = _failures(journal, {})
    return [
        Missing(project, f"{what}: {reason}")
        for project in sorted(failures.keys() - captured)
        for what, reason in sorted(failures[project].items())
    ]


def _failures(
    journal: Journal, compiles: Mapping[str, Mapping[str, dict[str, Any]]]
) -> dict[str, dict[str, str]]:
    """Return what failed in each project and why, but not what has succeeded since.

    :param compiles: the compilations of each project.
    """
    captured_at = {
        (project, event["source"]): event["time"]
        for project, events in compiles.items()
        for event in sorted(events.values(), key=lambda e: int(e["time"]))
    }
    failures: dict[str, dict[str, str]] = defaultdict(dict)
    for event in journal.failures():
        project, what = event["project"], event["what"]
        if captured_at.get((project, what), 0) < event["time"]:
            failures[project][what] = event["reason"]
    return failures


def _is_selected(program: str, programs: Mapping[str, tuple[str, ...]] | None) -> bool:
    return programs is None or program in programs


def _with_modules(
    selection: Selection, compiles: Mapping[str, dict[str, Any]], needed: Set[str]
) -> Draft:
    """Return a project with its modules.

    :param needed: the keys of the objects that programs need, of other projects too.
    """
    draft = Draft(selection)
    project = selection.project.name
    sampled = 0
    used: dict[str, str] = {}
    chosen = set(compiles) & needed if selection.linked_only else _chosen(compiles, needed)
    for key in sorted(chosen, key=lambda k: (compiles[k]["object"], k)):
        event = compiles[key]
        options, others = safe_cc1(event["arguments"])
        draft.dropped += len(others)
        sampled += any(word.startswith(_SAMPLE_PROFILE) for word in event["arguments"])
        name = _free_name(f"{project}/{event['object']}", used)
        used[name] = key
        module = Module(name, project, event["language"], event["bitcode"], options)
        draft.modules[key] = module
    if sampled:
        draft.missing.append(Missing(project, _WITHOUT_SAMPLES.format(sampled)))
    return draft


def _add_programs(
    draft: Draft,
    links: Mapping[str, dict[str, Any]],
    modules: Mapping[str, Module],
    before: Mapping[str, Program],
) -> None:
    """Add the programs of a project.

    :param modules: those of all projects, by object key: a program may be linked of several.
    :param before: programs of before, by their names: their runs are kept.
    """
    project, programs = draft.selection.project.name, draft.selection.programs or {}
    workloads = draft.selection.workloads
    for built, event in sorted(links.items()):
        draft.dropped += event["dropped"]
        inputs = [item for kind, value in event["tokens"] if (item := _input(kind, value, modules))]
        name = f"{project}/{_short(built, links)}"
        old = before.get(name)
        program = Program(
            name,
            project,
            event["language"],
            tuple(inputs),
            programs.get(built, old.smoke if old is not None else ()),
            workloads.get(built, old.workload if old is not None else None),
        )
        if len(inputs) < len(event["tokens"]):
            draft.missing.append(Missing(project, f"{built}: an input is not in the journal"))
        elif not program.modules:
            draft.missing.append(Missing(project, f"{built}: {NO_MODULES}"))
        else:
            draft.programs.append(program)
    for built in sorted(set(programs) - set(links)):
        draft.missing.append(Missing(project, f"{built}: was not linked by the build"))


def _newest(compiles: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return the key of the last compilation of each object, by the object's place."""
    ordered = sorted(compiles.items(), key=lambda item: (item[1]["time"], item[0]))
    # Older journals have no place.
    return {event.get("place", event["object"]): key for key, event in ordered}


def _chosen(compiles: Mapping[str, dict[str, Any]], needed: Set[str]) -> set[str]:
    """Choose object keys: what programs need, else the newest of each object, one per source.

    A library is often compiled twice, position-independent and not; such twins carry nothing
    new, so only those that a program needs are kept, or the first if none is needed.
    """
    newest = _newest(compiles)
    chosen = set(compiles) & needed
    sources = {compiles[key]["source"] for key in chosen}
    for name in sorted(newest):
        source = compiles[newest[name]]["source"]
        if source not in sources:
            sources.add(source)
            chosen.add(newest[name])
    return chosen


def _short(built: str, links: Iterable[str]) -> str:
    """Return a program's file name alone if no other program of the project has it."""
    name = built.rpartition("/")[2]
    return name if sum(other.rpartition("/")[2] == name for other in links) == 1 else built


def _free_name(name: str, used: Mapping[str, str]) -> str:
    if name not in used:
        return name
    stem = name.removesuffix(".o")
    return next(n for n in (f"{stem}-{i}.o" for i in range(2, 1 << 30)) if n not in used)


def _input(
    kind: Literal["object", "foreign", "option"], value: str, modules: Mapping[str, Module]
) -> Input | None:
    if kind == "object":
        module = modules.get(value)
        return Input("module", module.name) if module is not None else None
    if kind == "option" and not is_safe_link_option(value):
        return None
    return Input(kind, value)
