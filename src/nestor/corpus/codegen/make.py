"""Make a codegen corpus: each module as the middle end gives it to code generation.

A rollout on such a corpus runs no pass of the middle end: it costs code generation alone, and
its object is the one that the module before optimisation would have become.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Limits, run
from nestor.compiler.profile_option import with_profile_beside
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.codegen import derive
from nestor.corpus.codegen.commands import codegen_options, optimise_command
from nestor.corpus.codegen.derive import all_modules, place_of, require_source
from nestor.corpus.codegen.profile import Profiles, collect_profiles
from nestor.corpus.codegen.retarget import Target, retarget, retargeted_options, target_named
from nestor.corpus.exchange import copy_beside_modules
from nestor.corpus.model import Corpus, Missing, Module
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder

_LIMITS = Limits(seconds=600.0)


def make_codegen_corpus(
    corpus: Corpus,
    out: Path,
    toolchain: Toolchain,
    *,
    profile: bool = False,
    target: str | None = None,
    jobs: int = 2,
    progress: Progress = silent,
) -> Corpus:
    """Run the middle end on every module of ``corpus`` and write the results to ``out``.

    Programs, splits and inputs stay the same. A module that the compiler refuses is left out with
    the programs that need it, and named in ``missing``.

    :param out: a new folder.
    :param profile: run the programs that have a profile run, and give their modules the counts;
        the others stay without.
    :param target: a target other than the modules' own (:mod:`nestor.corpus.codegen.retarget`);
        the programs of such a corpus can be compiled and not be run.
    :raises CorpusError: if ``out`` is not empty, ``corpus`` is a codegen corpus already or one of a
        newer LLVM, the target is unknown, or no profiles can be made on this machine.
    """
    require_source(corpus, out, toolchain)
    with temporary_folder("codegen") as text:
        profiles = Profiles({}, ())
        if profile:
            profiles = collect_profiles(corpus, toolchain, Path(text), jobs, progress)
        other = None if target is None else target_named(toolchain, target, Path(text))
        optimised = partial(_optimised, corpus, out, toolchain, profiles, other)
        modules, missing = all_modules(corpus.modules, optimised, jobs, progress, "optimise")
    names = {module.name for module in modules}
    programs = tuple(p for p in corpus.programs if names.issuperset(p.modules))
    if target is not None:  # Nothing of it runs here.
        programs = tuple(replace(p, smoke=(), workload=None) for p in programs)
    written = replace(
        corpus,
        root=out,
        modules=modules,
        programs=programs,
        missing=(*corpus.missing, *profiles.missing, *missing),
        toolchain=toolchain.version,
    )
    copy_beside_modules(corpus, written)
    store.save(written)
    return written


def _optimised(
    corpus: Corpus,
    out: Path,
    toolchain: Toolchain,
    profiles: Profiles,
    target: Target | None,
    module: Module,
) -> Module | Missing:
    """Write one module; Missing if the compiler refuses it."""
    path = place_of(out, module)
    source, own = corpus.bitcode(module), module.options
    with temporary_folder("codegen") as folder:
        if target is not None:
            own = retargeted_options(with_profile_beside(own, source), target.triple)
            source = Path(folder) / "module.ll"
            if reason := retarget(toolchain, corpus.bitcode(module), target, source):
                return Missing(module.project, f"{module.name}: {reason}")
        profile = profiles.by_module.get(module.name)
        outcome = run(optimise_command(toolchain, own, source, path, profile), _LIMITS)
        if target is not None and outcome.ok:  # What it cannot compile shows in codegen only.
            command = compile_command(toolchain, codegen_options(own), path, Path(folder) / "o")
            outcome = run(command, _LIMITS)
    if not outcome.ok:
        return Missing(module.project, f"{module.name}: {outcome.reason}")
    return derive.written(path, module, codegen_options(own))
