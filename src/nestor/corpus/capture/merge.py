"""From a journal of captures to a corpus: choose, name, copy, write the manifest.

Merging is a function of the journal: doing it twice changes nothing, and a project that is in
the journal replaces the one of the same name in the corpus as a whole. One process at a time
changes a corpus.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nestor.compiler.options import is_safe_link_option, safe_cc1
from nestor.corpus import files, store
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import LOCK, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, Level, level_of
from nestor.corpus.model import (
    NO_MODULES,
    Corpus,
    CorpusError,
    Input,
    Missing,
    Module,
    Program,
    Project,
)
from nestor.files import locked, write_atomically
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class Selection:
    """What to take from a journal for one project.

    ``programs`` maps the names of built files to smoke arguments; None takes every program.
    """

    project: Project
    programs: Mapping[str, tuple[str, ...]] | None = None


@dataclass
class _Draft:
    """One project while it is being put together; modules by object key."""

    selection: Selection
    modules: dict[str, Module] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    dropped: int = 0


def finalise(
    root: Path,
    journal: Journal,
    selections: Iterable[Selection] = (),
    *,
    toolchain: str = "",
    missing: Iterable[Missing] = (),
    progress: Progress = silent,
) -> Corpus:
    """Merge ``journal`` into the corpus at ``root`` (made if need be) and return the corpus.

    Projects of the journal that ``selections`` does not mention get a plain :class:`Project`;
    ``missing`` is what the caller could not provide at all.

    :raises CorpusError: if the captures, or the corpus, were made at several levels.
    :raises OSError: if the corpus cannot be written.
    """
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / LOCK):
        return _finalise(root, journal, selections, toolchain, list(missing), progress)


def _finalise(
    root: Path,
    journal: Journal,
    selections: Iterable[Selection],
    toolchain: str,
    missing: list[Missing],
    progress: Progress,
) -> Corpus:
    old = store.load(root) if (root / MANIFEST).exists() else Corpus(root)
    drafts = _drafts(journal, {s.project.name: s for s in selections})
    missing += _lost(journal, {draft.selection.project.name for draft in drafts})
    level = _level(old, drafts)
    for draft in drafts:
        for key, module in draft.modules.items():
            _place(root, journal, key, module)
        for program in draft.programs:
            for item in program.inputs:
                if item.kind == "foreign":
                    content = journal.foreign_path(item.value).read_bytes()
                    write_atomically(root / "foreign" / f"{item.value}.o", content)
        progress("merge", 1, 1)
    corpus = _without_copies(replace(_combined(old, drafts, missing, toolchain), level=level))
    store.save(corpus)
    _sweep(old, corpus)
    return corpus


def _level(old: Corpus, drafts: Iterable[_Draft]) -> Level:
    """Return the one level of the corpus and of what is merged into it.

    :raises CorpusError: if there are several.
    """
    modules = [module for draft in drafts for module in draft.modules.values()]
    levels = {level_of(module.options) or DEFAULT_LEVEL for module in modules}
    replaced = {draft.selection.project.name for draft in drafts}
    if any(module.project not in replaced for module in old.modules):
        levels.add(old.level)
    if len(levels) > 1:
        raise CorpusError(
            f"{old.root} would hold modules of the levels {' and '.join(sorted(levels))}, and a "
            "corpus has one: name a new folder for the other level."
        )
    return next(iter(levels), old.level)


def _drafts(journal: Journal, selections: Mapping[str, Selection]) -> list[_Draft]:
    compiles: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for key, event in journal.compiles():
        compiles[event["project"]][key] = event
    links: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in journal.links():
        links[event["project"]][event["program"]] = event  # The last link of a file wins.
    failures: dict[str, dict[str, str]] = defaultdict(dict)
    for event in journal.failures():
        failures[event["project"]][event["what"]] = event["reason"]
    names = sorted({*compiles, *links})
    chosen = {name: selections.get(name, Selection(Project(name))) for name in names}
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
    drafts = [_with_modules(chosen[name], compiles[name], needed) for name in names]
    every = {key: module for draft in drafts for key, module in draft.modules.items()}
    for name, draft in zip(names, drafts, strict=True):
        ours = built[name]
        _add_programs(draft, ours, every)
        draft.missing += [
            Missing(name, f"{what}: {reason}")
            for what, reason in sorted(failures[name].items())
            if what not in ours and _is_selected(what, draft.selection.programs)
        ]
    return drafts


def _lost(journal: Journal, captured: Set[str]) -> list[Missing]:
    """Return the failures of projects of which nothing at all was captured."""
    return [
        Missing(event["project"], f"{event['what']}: {event['reason']}")
        for event in journal.failures()
        if event["project"] not in captured
    ]


def _is_selected(program: str, programs: Mapping[str, tuple[str, ...]] | None) -> bool:
    return programs is None or program in programs


def _with_modules(
    selection: Selection, compiles: Mapping[str, dict[str, Any]], needed: Set[str]
) -> _Draft:
    """Return a project with its modules.

    :param needed: the keys of the objects that programs need, of other projects too.
    """
    draft = _Draft(selection)
    project = selection.project.name
    used: dict[str, str] = {}
    for key in sorted(_chosen(compiles, needed), key=lambda k: (compiles[k]["object"], k)):
        event = compiles[key]
        options, dropped = safe_cc1(event["arguments"])
        draft.dropped += dropped
        name = _free_name(f"{project}/{event['object']}", used)
        used[name] = key
        module = Module(name, project, event["language"], event["bitcode"], options)
        draft.modules[key] = module
    return draft


def _add_programs(
    draft: _Draft, links: Mapping[str, dict[str, Any]], modules: Mapping[str, Module]
) -> None:
    """Add the programs of a project.

    :param modules: those of all projects, by object key: a program may be linked of several.
    """
    project, programs = draft.selection.project.name, draft.selection.programs or {}
    for built, event in sorted(links.items()):
        draft.dropped += event["dropped"]
        inputs = [item for kind, value in event["tokens"] if (item := _input(kind, value, modules))]
        name = f"{project}/{_short(built, links)}"
        program = Program(name, project, event["language"], tuple(inputs), programs.get(built, ()))
        if len(inputs) < len(event["tokens"]):
            draft.missing.append(Missing(project, f"{built}: an input is not in the journal"))
        elif not program.modules:
            draft.missing.append(Missing(project, f"{built}: {NO_MODULES}"))
        else:
            draft.programs.append(program)
    for built in sorted(set(programs) - set(links)):
        draft.missing.append(Missing(project, f"{built}: was not linked by the build"))


def _chosen(compiles: Mapping[str, dict[str, Any]], needed: Set[str]) -> set[str]:
    """Choose object keys: what programs need, else the newest of each object, one per source.

    A library is often compiled twice, position-independent and not; such twins carry nothing
    new, so only those that a program needs are kept, or the first if none is needed.
    """
    newest: dict[str, str] = {}
    for key, event in sorted(compiles.items(), key=lambda item: (item[1]["time"], item[0])):
        newest[event.get("place", event["object"])] = key  # older journals have no place
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


def _place(root: Path, journal: Journal, key: str, module: Module) -> None:
    """Copy bitcode and command into the corpus."""
    target = root / files.safe_name(module.name, root)
    content = journal.bitcode_path(module.digest).read_bytes()
    write_atomically(target.with_name(f"{target.name}.bc"), content)
    command = "\0".join(module.options).encode()
    write_atomically(target.with_name(f"{target.name}.cmd"), command)


def _combined(old: Corpus, drafts: list[_Draft], missing: list[Missing], toolchain: str) -> Corpus:
    fresh = {draft.selection.project.name for draft in drafts}
    updated = fresh | {m.project for m in missing}
    programs = [p for p in old.programs if p.project not in fresh]
    programs += [p for draft in drafts for p in draft.programs]
    modules = {m.name: m for draft in drafts for m in draft.modules.values()}
    still_needed = {name for p in programs for name in p.modules}
    for module in old.modules:
        if module.project not in fresh or module.name in still_needed - modules.keys():
            modules[module.name] = module
    projects = [p for p in old.projects if p.name not in fresh]
    projects += [replace(d.selection.project, dropped_options=d.dropped) for d in drafts]
    missing = [m for m in old.missing if m.project not in updated] + missing
    return Corpus(
        root=old.root,
        modules=tuple(sorted(modules.values(), key=lambda m: m.name)),
        programs=tuple(sorted(programs, key=lambda p: p.name)),
        projects=tuple(sorted(projects, key=lambda p: p.name)),
        missing=(*missing, *(m for draft in drafts for m in draft.missing)),
        toolchain=toolchain or old.toolchain,
    )


def _without_copies(corpus: Corpus) -> Corpus:
    """Keep one of several equal modules: a held-out one first, so that nothing leaks."""
    order = {"test": 0, "validation": 1, "train": 2}

    def rank(module: Module) -> tuple[int, str]:
        return order[corpus.splits.get(module.project, "train")], module.name

    first: dict[tuple[str, tuple[str, ...]], str] = {}
    for module in sorted(corpus.modules, key=rank):
        first.setdefault((module.digest, module.options), module.name)
    keep = {m.name: first[m.digest, m.options] for m in corpus.modules}
    programs = tuple(
        replace(
            program,
            inputs=tuple(
                replace(i, value=keep[i.value]) if i.kind == "module" else i for i in program.inputs
            ),
        )
        for program in corpus.programs
    )
    modules = tuple(m for m in corpus.modules if keep[m.name] == m.name)
    return replace(corpus, modules=modules, programs=programs)


def _sweep(old: Corpus, new: Corpus) -> None:
    """Remove the files of modules that the new corpus does not have."""
    for name in old.by_name.keys() - new.by_name.keys():
        for suffix in (".bc", ".cmd"):
            (new.root / f"{name}{suffix}").unlink(missing_ok=True)
