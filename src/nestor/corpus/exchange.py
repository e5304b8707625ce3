"""Corpora from and for others: whole copies in LLVM's layout or in ours."""

import shutil
from dataclasses import replace
from pathlib import Path

from nestor.corpus import files, store
from nestor.corpus.layout import DESCRIPTION
from nestor.corpus.model import Corpus, CorpusError
from nestor.progress import Progress, silent


def export(corpus: Corpus, out: Path, progress: Progress = silent) -> None:
    """Write ``corpus`` to the new folder ``out`` in LLVM's layout, without our manifest."""
    _copy(corpus, out, progress)
    description = {"has_thinlto": False, "modules": [m.name for m in corpus.modules]}
    files.write_json(out / DESCRIPTION, description)


def import_(source: Path, out: Path, progress: Progress = silent) -> Corpus:
    """Copy the corpus at ``source`` (either layout) to the new folder ``out`` as one of ours."""
    corpus = store.load(source)
    store.verify(corpus, progress)
    _copy(corpus, out, progress)
    copied = replace(corpus, root=out)
    copy_beside_modules(corpus, copied)
    store.save(copied)
    return copied


def copy_beside_modules(corpus: Corpus, copied: Corpus) -> None:
    """Copy the foreign objects and the inputs of ``corpus`` to the folder of ``copied``."""
    foreign = {i.value for p in corpus.programs for i in p.inputs if i.kind == "foreign"}
    inputs = {digest for project in corpus.projects for _, digest in project.inputs}
    files_beside = [(corpus.foreign(digest), copied.foreign(digest)) for digest in foreign]
    files_beside += [(corpus.input(digest), copied.input(digest)) for digest in inputs]
    for original, target in sorted(files_beside):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, target)


def _copy(corpus: Corpus, out: Path, progress: Progress) -> None:
    if out.exists() and any(out.iterdir()):
        raise CorpusError(f"{out} is not empty; name a new folder.")
    for done, module in enumerate(corpus.modules):
        progress("copy", done, len(corpus.modules))
        target = out / f"{module.name}.bc"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(corpus.bitcode(module), target)
        (out / f"{module.name}.cmd").write_bytes("\0".join(module.options).encode())
        if (profile := corpus.profile(module)) is not None:
            shutil.copyfile(profile, target.with_name(profile.name))
    progress("copy", len(corpus.modules), len(corpus.modules))
