"""A corpus on disk: ``manifest.json`` beside the layout that LLVM's own tools read.

The manifest is checked in full before any of it is used, and written after all other files, by
one rename: a reader sees either the corpus before a change or the one after it.
"""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from nestor.compiler.options import is_safe_link_option
from nestor.corpus import llvm_layout
from nestor.corpus.files import (
    read,
    read_json,
    read_options,
    require_regular,
    safe_name,
    write_json,
)
from nestor.corpus.layout import DESCRIPTION, JOURNAL, LOCK, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, Level, parse_level
from nestor.corpus.model import (
    NO_MODULES,
    SPLITS,
    Corpus,
    CorpusError,
    Input,
    Missing,
    Module,
    Program,
    Project,
    Workload,
    require_level,
    runs_of,
)
from nestor.progress import Progress, silent

VERSION = 1


def load(root: Path) -> Corpus:
    """Return the corpus in the folder ``root``, checked; bitcode is not read (see ``verify``).

    A folder in LLVM's plain layout, without our manifest, is read as well: it has modules only.
    Raises :class:`CorpusError`.
    """
    if root.is_file():
        raise CorpusError(f"{root} is a file, and a corpus is a folder.")
    if not root.is_dir():
        raise CorpusError(
            f"There is no corpus at {root}; 'nestor corpus fetch tiny {root}' makes one."
        )
    if not (root / MANIFEST).exists():
        if (root / DESCRIPTION).exists():
            return llvm_layout.read(root)
        if (root / JOURNAL).exists():
            raise CorpusError(
                f"{root} holds captures that are not merged yet; 'nestor corpus capture --out "
                f"{root}' merges them."
            )
        raise CorpusError(
            f"{root} holds neither {MANIFEST} nor {DESCRIPTION}, so it is no corpus; make one "
            "with 'nestor corpus fetch' or 'nestor corpus capture'."
        )
    try:
        return _corpus(root, read_json(root / MANIFEST))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(
            f"{root / MANIFEST} is damaged ({type(error).__name__}: {error}); make it again."
        ) from error


def to_complete(root: Path, level: Level) -> Corpus | None:
    """Return the corpus at ``root`` that gets more modules of ``level``; None if there is none yet.

    :raises CorpusError: if the folder holds something else, or a corpus of another level.
    """
    if not (root / MANIFEST).exists():
        if root.exists() and any(path.name != LOCK for path in root.iterdir()):
            raise CorpusError(
                f"{root} is not empty and holds no corpus of ours; name a new folder."
            )
        return None
    corpus = load(root)
    if corpus.modules:
        require_level(corpus, level)
    return corpus


def verify(corpus: Corpus, progress: Progress = silent) -> None:
    """Read every file of the corpus and compare its sha256; raises :class:`CorpusError`."""
    files = _files(corpus)
    for done, (path, digest) in enumerate(files):
        progress("verify", done, len(files))
        if not path.exists() or hashlib.sha256(read(path, "data")).hexdigest() != digest:
            raise CorpusError(
                f"{path} is missing or is not the file that the manifest names; fetch or capture "
                f"the project again."
            )
    progress("verify", len(files), len(files))


def _files(corpus: Corpus) -> list[tuple[Path, str]]:
    """Return every file that compilers or programs read, and its sha256."""
    foreign = {i.value for p in corpus.programs for i in p.inputs if i.kind == "foreign"}
    files = [(corpus.bitcode(m), m.digest) for m in corpus.modules]
    files += sorted(corpus.profiles.items())
    files += [(corpus.foreign(digest), digest) for digest in sorted(foreign)]
    inputs = {digest for project in corpus.projects for _, digest in project.inputs}
    return files + [(corpus.input(digest), digest) for digest in sorted(inputs)]


def save(corpus: Corpus) -> None:
    """Write the manifest and LLVM's description of ``corpus``; its files must be there already."""
    description = {"has_thinlto": False, "modules": [m.name for m in corpus.modules]}
    write_json(corpus.root / DESCRIPTION, description)
    write_json(corpus.root / MANIFEST, _manifest(corpus))


def _manifest(corpus: Corpus) -> dict[str, Any]:
    return {
        "nestor_corpus": VERSION,
        "digest": corpus.digest,
        "toolchain": corpus.toolchain,
        "level": corpus.level,
        "projects": [
            {
                "name": p.name,
                "version": p.version,
                "licence": p.licence,
                "split": p.split,
                "recipe": p.recipe,
                "dropped_options": p.dropped_options,
                "sources": dict(p.sources),
                "style": p.style,
                "inputs": dict(p.inputs),
            }
            for p in corpus.projects
        ],
        "modules": [
            {"name": m.name, "project": m.project, "language": m.language, "digest": m.digest}
            for m in corpus.modules
        ],
        "programs": [
            {
                "name": p.name,
                "project": p.project,
                "language": p.language,
                "smoke": list(p.smoke),
                **_workload_entry(p.workload),
                "inputs": [[i.kind, i.value] for i in p.inputs],
            }
            for p in corpus.programs
        ],
        "missing": [{"project": m.project, "reason": m.reason} for m in corpus.missing],
    }


def _corpus(root: Path, manifest: dict[str, Any]) -> Corpus:
    version = manifest["nestor_corpus"]
    if version != VERSION:
        raise CorpusError(
            f"{root} has corpus format {version!r} and this Nestor reads {VERSION}; use the "
            "Nestor that wrote it, or fetch the corpus again."
        )
    projects = [_project(entry) for entry in manifest["projects"]]
    dropped: Counter[str] = Counter()
    modules = []
    for entry in manifest["modules"]:
        name = safe_name(entry["name"], root)
        options, unsafe = read_options(root / f"{name}.cmd")
        digest, project = _sha256(entry["digest"]), _text(entry["project"])
        dropped[project] += unsafe
        modules.append(Module(name, project, _language(entry["language"]), digest, options))
    names = {module.name for module in modules}
    if len(names) != len(modules):
        raise ValueError("a module is named twice")
    absent = {module.project for module in modules} - {project.name for project in projects}
    if absent:
        raise ValueError(f"there is no project {min(absent)}")
    found = [_program(entry, names) for entry in manifest["programs"]]
    programs = tuple(program for program in found if program.modules)
    missing = tuple(
        Missing(_text(entry["project"]), _text(entry["reason"])) for entry in manifest["missing"]
    ) + tuple(
        Missing(p.project, f"{p.name.partition('/')[2]}: {NO_MODULES}")
        for p in found
        if not p.modules
    )
    toolchain = _text(manifest["toolchain"])
    counted = tuple(
        replace(p, dropped_options=p.dropped_options + dropped[p.name]) for p in projects
    )
    level = parse_level(manifest.get("level", DEFAULT_LEVEL))
    corpus = Corpus(root, tuple(modules), programs, counted, missing, toolchain, level)
    for path, _ in _files(corpus):
        require_regular(path)
    return corpus


def _project(entry: dict[str, Any]) -> Project:
    split = entry["split"]
    if split not in SPLITS:
        raise ValueError(f"no split: {split!r}")
    sources = tuple((_text(name), _sha256(digest)) for name, digest in entry["sources"].items())
    name, version = _text(entry["name"]), _text(entry["version"])
    return Project(
        name,
        version,
        _text(entry["licence"]),
        sources,
        split,
        _text(entry["recipe"]),
        _count(entry["dropped_options"]),
        _text(entry.get("style", "")),
        tuple(
            (_file_name(file), _sha256(digest)) for file, digest in entry.get("inputs", {}).items()
        ),
    )


def _program(entry: dict[str, Any], modules: set[str]) -> Program:
    name = _text(entry["name"])
    inputs = []
    depth = 0
    for kind, value in entry["inputs"]:
        if kind == "module":
            if value not in modules:
                raise ValueError(f"program {name} has an input {value!r} that is no module")
        elif kind == "foreign":
            _sha256(value)
        elif kind == "option":
            if not isinstance(value, str) or not is_safe_link_option(value):
                raise CorpusError(
                    f"The program {name} has the link option {value!r}, which is not on the list "
                    "of safe ones; do not use this corpus."
                )
            depth += {"-Wl,--start-lib": 1, "-Wl,--end-lib": -1}.get(value, 0)
        else:
            raise ValueError(f"no kind of input: {kind!r}")
        if depth not in (0, 1):
            raise ValueError(f"libraries of program {name} are nested")
        inputs.append(Input(kind, value))
    if depth:
        raise ValueError(f"a library of program {name} does not end")
    language, smoke = _language(entry["language"]), tuple(_text(word) for word in entry["smoke"])
    workload = _workload(entry["workload"]) if "workload" in entry else None
    return Program(name, _text(entry["project"]), language, tuple(inputs), smoke, workload)


def _workload_entry(workload: Workload | None) -> dict[str, Any]:
    """Return the part of a program's entry that says its workload; most programs have none."""
    if workload is None:
        return {}
    runs = [list(run) for run in workload.profile]
    return {"workload": {"measure": list(workload.measure), "profile": runs}}


def _workload(entry: dict[str, Any]) -> Workload:
    profile = tuple(tuple(map(_text, run)) for run in runs_of(entry["profile"]))
    return Workload(tuple(map(_text, entry["measure"])), profile)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 100_000 or "\0" in value:
        raise ValueError(f"expected a text, found {value!r:.80}")
    return value


def _file_name(value: object) -> str:
    name = _text(value)
    if not name.isprintable() or name in ("", ".", "..") or "/" in name or len(name) > 200:
        raise ValueError(f"expected the name of a file, found {name!r:.80}")
    return name


def _language(value: object) -> str:
    if value not in ("c", "c++"):
        raise ValueError(f"no language: {value!r:.80}")
    return str(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"expected a count, found {value!r:.80}")
    return value


def _sha256(value: object) -> str:
    text = _text(value)
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"expected a sha256, found {text!r:.80}")
    return text
