"""From policies' names to a compiler and its options, all of it in content-addressed files.

A build system, ccache and a person compile again when a command line changes. So the options name
copies whose file names are digests: another policy, other overrides or another summary is another
command line.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.cli.use import remembered
from nestor.cli.use.choice import Choice, choose
from nestor.cli.use.words import Words
from nestor.compiler.cache import cache_place
from nestor.compiler.invocation import link_flags
from nestor.compiler.plugin import Plugin, source_files
from nestor.compiler.toolchain import binaries, looked_for
from nestor.corpus.lto_option import OTHER_LINKER
from nestor.errors import NestorError
from nestor.problem.in_builds import problems_in_builds
from nestor.progress import Progress
from nestor.rollout.ready import named_file, passed_plugin
from nestor.rollout.records import gate_record

LTO_WITH_SUMMARY: Final = (
    "A summary holds what one module cannot see of its program, and LTO sees all of it:"
    " leave --summary out."
)
BEST_WITH_THIN_LTO: Final = (
    "--best and portfolios try functions in a compiler with one thread, and thin LTO has several:"
    " use full LTO (-flto), or a single policy without --best."
)


@dataclass(frozen=True)
class Ingredients:
    """Everything that a build under policies needs besides its own files."""

    plugin: Plugin
    choice: Choice

    @property
    def files(self) -> list[Path]:
        """The policies' and the user's files."""
        return [option.value for option in self.choice.options if isinstance(option.value, Path)]

    def compile_options(self) -> list[str]:
        """Return the driver's options for compiles."""
        # Without a summary the packaged policies try nothing here.
        kept = self._kept_trials() if self.choice.has_summary else []
        return self.plugin.driver_words([*self._words(), *kept])

    def link_options(self) -> list[str]:
        """Return the driver's options for links by LTO.

        :raises NestorError: with a summary, which LTO has no use for.
        """
        if self.choice.has_summary:
            raise NestorError(LTO_WITH_SUMMARY)
        threads = ["-Xlinker", "--threads=1"] if self.choice.best else []
        words = [*self._words(), *self._kept_trials()]
        return ["-fuse-ld=lld", *threads, *link_flags(self.plugin, words)]

    def compiler(self, name: str, lto: str) -> list[str]:
        """Return the compiler ``clang`` or ``clang++`` with its options, before the user's.

        :param lto: as :func:`~nestor.corpus.lto_option.kind_of_link` has it. With LTO the policies
            decide in the link.
        :raises NestorError: for what this kind of LTO cannot do.
        """
        path = self.plugin.toolchain.clang.with_name(name)
        if lto == OTHER_LINKER:
            return [str(path)]
        if lto == "thin" and self.choice.best:
            raise NestorError(BEST_WITH_THIN_LTO)
        options = self.link_options() if lto else self.compile_options()
        # The plugin's options must not warn where nothing is compiled, as in a link.
        return [str(path), "--start-no-unused-arguments", *options, "--end-no-unused-arguments"]

    def _kept_trials(self) -> list[str]:
        """Return the option with the folder of what was tried; another plugin may try otherwise."""
        place = f"{cache_place()}/trials/{self.plugin.path.parent.name}"
        return [f"{self.choice.trials}={place}"] if self.choice.trials is not None else []

    def _words(self) -> list[str]:
        return [str(option) for option in self.choice.options]


def find(own: Words, progress: Progress) -> Ingredients:
    """Find compiler, plugin, policies and the user's files, and check what is new to the cache.

    :param progress: hears of the plugin's build, which takes some 20 seconds.
    :raises NestorError: if one of them cannot be used.
    """
    if own.lto and own.summary is not None:
        raise NestorError(LTO_WITH_SUMMARY)
    choice = choose(own, problems_in_builds(own.problem or DEFAULT_PROBLEM))
    return Ingredients(passed_plugin(own.llvm, choice.problems, progress), choice)


class Memory:
    """What a command line depends on, noted before it is read, and kept if that is safe."""

    def __init__(self, own: Words):
        named = (
            *own.policies,
            *own.overrides,
            own.summary,
            own.llvm,
            os.environ.get("NESTOR_LLVM"),
        )
        # A path that is too long or has a NUL is refused later, in better words.
        self._user = [word for word in named if word and os.path.exists(word)]  # noqa: PTH110
        self._settled = all(map(remembered.settled, self._user))
        looked_at = [*map(Path, self._user), *looked_for(own.llvm)]
        problems = list(problems_in_builds(own.problem or DEFAULT_PROBLEM))
        packaged = (named_file(policy, problems) for policy in own.policies)
        looked_at += (path for path in packaged if path.name)  # not a built-in that is no file
        self._stamps = remembered.stamps(str(path.absolute()) for path in looked_at)

    def keep(self, key: Sequence[str], found: Ingredients, result: Sequence[str]) -> None:
        """Remember ``result`` for the words ``key``, unless a file was written just now."""
        stamps = self.stamps(found)
        if stamps is not None:
            anywhere = all(Path(word).is_absolute() for word in self._user)
            remembered.remember(key, result, stamps, anywhere=anywhere)

    def stamps(self, found: Ingredients) -> dict[str, str] | None:
        """Return the stamps of all files on which it depends what was found.

        None if the user's files were written so late that the next change need not show, or if
        there is other code now than what this process runs.
        """
        own = (module.__file__ for name, module in sys.modules.items() if _is_ours(name))
        code = [path for path in own if path]
        if not self._settled or any(map(remembered.changed_since_start, code)):
            return None
        plugin = found.plugin
        gates = (gate_record(plugin, problem) for problem in found.choice.problems)
        files = [*found.files, plugin.path, *gates, *source_files()]
        files += binaries(plugin.toolchain.prefix)
        return remembered.stamps([*map(str, files), *code]) | self._stamps


def _is_ours(module: str) -> bool:
    return module == "nestor" or module.startswith("nestor.")
