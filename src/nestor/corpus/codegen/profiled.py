"""Make a profiled corpus: modules before optimisation that carry what a run of them counted.

Counters go into the bitcode as the front end left it, and the counts come back to the same place,
so that every later compile of a module is one with a profile and needs no other file. In
``-fprofile-use`` the middle end has simplified a module before it looks for its counts: counts here
are of code before that.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.codegen.profile import collect_profiles
from nestor.corpus.exchange import copy_beside_modules
from nestor.corpus.model import Corpus, CorpusError, Missing, Module
from nestor.corpus.release import require_readable
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder

_LIMITS: Final = Limits(seconds=600.0)
_COUNT: Final = "pgo-instr-gen,instrprof"
_USE: Final = "pgo-instr-use"


def make_profiled_corpus(
    corpus: Corpus,
    out: Path,
    toolchain: Toolchain,
    *,
    jobs: int = 2,
    progress: Progress = silent,
) -> Corpus:
    """Run the programs that have a profile run, and write the modules that it counted to ``out``.

    Only these programs and their modules are in the new corpus; the others are named in
    ``missing``, with the reason.

    :param out: a new folder.
    :raises CorpusError: if ``out`` is not empty, ``corpus`` is a codegen corpus or one of a newer
        LLVM, no profiles can be made on this machine, or no program could be counted.
    """
    if out.exists() and any(out.iterdir()):
        raise CorpusError(f"{out} is not empty; name a new folder.")
    if corpus.is_codegen:
        raise CorpusError(f"{corpus.root} is a codegen corpus; name what it was made of.")
    require_readable(corpus, toolchain)
    if not toolchain.opt.exists():
        raise CorpusError(f"{toolchain.prefix} has no opt: install llvm-{toolchain.major}.")
    with temporary_folder("profiled") as text:
        profiles = collect_profiles(
            corpus, toolchain, Path(text), jobs, progress, _instrument_before_passes
        )
        counted = [module for module in corpus.modules if module.name in profiles.by_module]

        def annotate(module: Module) -> Module | Missing:
            return _annotated(corpus, out, toolchain, profiles.by_module[module.name], module)

        results = list[Module | Missing]()
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            for done, result in enumerate(pool.map(annotate, counted), 1):
                results.append(result)
                progress("annotate", done, len(counted))
    modules = tuple(each for each in results if isinstance(each, Module))
    refused = tuple(each for each in results if isinstance(each, Missing))
    names = {module.name for module in modules}
    programs = tuple(p for p in corpus.programs if names.issuperset(p.modules))
    missing = (*corpus.missing, *profiles.missing, *refused)
    if not programs:
        why = missing[-1].reason if missing else "none has a profile run"
        raise CorpusError(f"No program of {corpus.root} could be counted: {why}.")
    used = {name for program in programs for name in program.modules}
    written = replace(
        corpus,
        root=out,
        modules=tuple(module for module in modules if module.name in used),
        programs=programs,
        missing=missing,
        toolchain=toolchain.version,
    )
    copy_beside_modules(corpus, written)
    store.save(written)
    return written


def _instrument_before_passes(
    toolchain: Toolchain, options: Sequence[str], bitcode: Path, out: Path
) -> Outcome:
    counting = out.with_name(f"{out.name}.counting.bc")
    outcome = run([toolchain.opt, f"-passes={_COUNT}", bitcode, "-o", counting], _LIMITS)
    if not outcome.ok:
        return outcome
    return run(compile_command(toolchain, options, counting, out), _LIMITS)


def _annotated(
    corpus: Corpus, out: Path, toolchain: Toolchain, profile: Path, module: Module
) -> Module | Missing:
    """Write one module with its counts; Missing if ``opt`` refuses it."""
    path = out / f"{module.name}.bc"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = f"-pgo-test-profile-file={profile}"
    words: list[str | Path] = [
        toolchain.opt,
        f"-passes={_USE}",
        file,
        corpus.bitcode(module),
        "-o",
        path,
    ]
    outcome = run(words, _LIMITS)
    if not outcome.ok:
        return Missing(module.project, f"{module.name}: {outcome.reason}")
    path.with_suffix(".cmd").write_bytes("\0".join(module.options).encode())
    return replace(module, digest=hashlib.sha256(path.read_bytes()).hexdigest())
