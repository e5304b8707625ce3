"""From a journal of captures to a corpus: copy the files, write the manifest.

Merging is a function of the journal: doing it twice changes nothing, and a project that is in
the journal replaces the one of the same name in the corpus as a whole. One process at a time
changes a corpus.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nestor.compiler.profile_option import profile_path
from nestor.corpus import files, store
from nestor.corpus.capture.drafts import Draft, Selection, draft_projects, lost_projects
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import LOCK, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, Level, level_of
from nestor.corpus.model import (
    Corpus,
    CorpusError,
    Missing,
    Module,
)
from nestor.files import locked, write_atomically
from nestor.progress import Progress, silent


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

    Projects of the journal that ``selections`` does not mention keep their split, style and smoke
    tests, if the corpus has them already; ``missing`` is what the caller could not provide at all.

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
    drafts = draft_projects(journal, {s.project.name: s for s in selections}, old)
    missing += lost_projects(journal, {draft.selection.project.name for draft in drafts})
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


def _level(old: Corpus, drafts: Iterable[Draft]) -> Level:
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


def _place(root: Path, journal: Journal, key: str, module: Module) -> None:
    """Copy bitcode, command and profile into the corpus."""
    target = root / files.safe_name(module.name, root)
    content = journal.bitcode_path(module.digest).read_bytes()
    write_atomically(target.with_name(f"{target.name}.bc"), content)
    command = "\0".join(module.options).encode()
    write_atomically(target.with_name(f"{target.name}.cmd"), command)
    if module.profile is not None:
        profile = profile_path(target, module.profile)
        if not profile.exists():
            write_atomically(profile, journal.profile_path(module.profile).read_bytes())


def _combined(old: Corpus, drafts: list[Draft], missing: list[Missing], toolchain: str) -> Corpus:
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
    for path in old.profiles.keys() - new.profiles.keys():
        path.unlink(missing_ok=True)
