"""Make a profiled corpus: modules before optimisation that carry what a run of them counted.

Counters go into the bitcode as the front end left it, and the counts come back to the same place,
so that every later compile of a module is one with a profile and needs no other file. In
``-fprofile-use`` the middle end has simplified a module before it looks for its counts: counts here
are of code before that.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.profile_option import without_profile
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.codegen import derive
from nestor.corpus.codegen.derive import all_modules, place_of, require_source
from nestor.corpus.codegen.profile import collect_profiles
from nestor.corpus.exchange import copy_beside_modules
from nestor.corpus.model import Corpus, CorpusError, Missing, Module
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
    require_source(corpus, out, toolchain)
    if not toolchain.opt.exists():
        raise CorpusError(f"{toolchain.prefix} has no opt: install llvm-{toolchain.major}.")
    with temporary_folder("profiled") as text:
        profiles = collect_profiles(
            corpus, toolchain, Path(text), jobs, progress, _instrument_before_passes
        )
        counted = [module for module in corpus.modules if module.name in profiles.by_module]

        def annotate(module: Module) -> Module | Missing:
            return _annotated(corpus, out, toolchain, profiles.by_module[module.name], module)

        modules, refused = all_modules(counted, annotate, jobs, progress, "annotate")
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
    own = without_profile(options)
    return run(compile_command(toolchain, own, counting, out), _LIMITS)


def _annotated(
    corpus: Corpus, out: Path, toolchain: Toolchain, profile: Path, module: Module
) -> Module | Missing:
    """Write one module with its counts; Missing if ``opt`` refuses it."""
    path = place_of(out, module)
    options = [f"-passes={_USE}", f"-pgo-test-profile-file={profile}"]
    outcome = run([toolchain.opt, *options, corpus.bitcode(module), "-o", path], _LIMITS)
    if not outcome.ok:
        return Missing(module.project, f"{module.name}: {outcome.reason}")
    return derive.written(path, module, without_profile(module.options))
