"""LLVM's own corpus layout: ``X.bc``, ``X.cmd`` and ``corpus_description.json``.

What ``extract_ir`` of LLVM's MLGO utilities writes can be read, and what is written here can be
read by them. Programs, licences and splits are ours alone and live in the manifest beside it.
"""

import hashlib
from collections import Counter
from pathlib import Path

from nestor.compiler.options import safe_cc1
from nestor.corpus import files
from nestor.corpus.layout import DESCRIPTION
from nestor.corpus.level import DEFAULT_LEVEL, level_of
from nestor.corpus.model import Corpus, CorpusError, Module, Project
from nestor.progress import Progress, silent


def read(root: Path, progress: Progress = silent) -> Corpus:
    """Read a corpus that has only LLVM's description: modules, and a project per first folder.

    With ``global_command_override`` in the description its options hold for every module and
    the ``.cmd`` files are not read, as in LLVM's tools. Raises :class:`CorpusError`.
    """
    description = files.read_json(root / DESCRIPTION)
    names = description.get("modules")
    override = description.get("global_command_override")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CorpusError(f"{root / DESCRIPTION} has no list of modules; extract it again.")
    shared: tuple[str, ...] | None = None
    dropped: Counter[str] = Counter()
    unsafe = 0
    if override is not None:
        if not isinstance(override, list) or not all(isinstance(w, str) for w in override):
            raise CorpusError(
                f"global_command_override of {root / DESCRIPTION} is not a list of words; "
                "extract the corpus again."
            )
        found = safe_cc1(override)
        shared, unsafe = found.kept, found.dropped
    modules = []
    for done, name in enumerate(sorted(set(names))):
        progress("read", done, len(names))
        module, refused = _module(root, name, shared)
        modules.append(module)
        dropped[module.project] += refused or unsafe
    projects = tuple(Project(name, dropped_options=n) for name, n in sorted(dropped.items()))
    levels = {level_of(module.options) for module in modules} - {None}
    level = next(iter(levels), None) if len(levels) == 1 else None
    return Corpus(root, tuple(modules), projects=projects, level=level or DEFAULT_LEVEL)


def _module(root: Path, name: str, shared: tuple[str, ...] | None) -> tuple[Module, int]:
    files.safe_name(name, root)
    digest = hashlib.sha256(files.read(root / f"{name}.bc", "bitcode")).hexdigest()
    options, dropped = (shared, 0) if shared else files.read_options(root / f"{name}.cmd")
    first, _, rest = name.partition("/")
    project = first if rest else root.resolve().name
    return Module(name, project, _language(options), digest, options), dropped


def _language(options: tuple[str, ...]) -> str:
    """Guess the language, which the layout does not record, from what only C++ asks for."""
    return "c++" if "-fcxx-exceptions" in options else "c"
