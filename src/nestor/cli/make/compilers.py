"""The compilers of a build of ``nestor make``: from policies' names to the scripts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from nestor.cli.make import again, scripts
from nestor.cli.make.place import POLICY, compiler_names, compilers_folder
from nestor.cli.make.words import USUAL_INSIDE_LTO, USUAL_POLICIES, Words
from nestor.cli.remarks import report_once
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.cli.use import command, remembered
from nestor.cli.use.choice import DEFAULT_POLICY, choose
from nestor.cli.use.words import Words as PolicyWords
from nestor.compiler.plugin import Plugin
from nestor.problem.in_builds import (
    InBuilds,
    in_lto,
    made_for,
    problems_in_builds,
)
from nestor.problems.inlining_size.features.site import SUMMARY_PREFIX
from nestor.rollout.ready import StoredPolicy, passed_plugin, stored_policy

_STOCK: Final = (DEFAULT_POLICY,)
_PROBLEMS: Final = problems_in_builds(DEFAULT_PROBLEM)


@dataclass(frozen=True)
class Compilers:
    """What a build's compilers are made from."""

    own: Words
    place: Path
    """The folder of ``nestor make``."""
    stored: Mapping[str, StoredPolicy]
    """The policies, by the names or files that the user gives."""
    plugin: Plugin

    @cached_property
    def policies(self) -> Mapping[str, InBuilds]:
        """The problem of each policy."""
        return {word: _PROBLEMS[policy.problem] for word, policy in self.stored.items()}

    @cached_property
    def reading(self) -> Mapping[str, str]:
        """The policy that reads a summary, by the level at which it decides."""
        return {
            level: word
            for word, policy in self.stored.items()
            if any(name.startswith(SUMMARY_PREFIX) for name in policy.features)
            for level in self.policies[word].levels
        }

    def options(self, *, with_summary: bool) -> scripts.Options:
        """Return the options that the compilers add; with the summary only if there is one."""
        reading = set(self.reading.values())
        others = {word: own for word, own in self.policies.items() if word not in reading}

        def at(level: str) -> tuple[str, ...]:
            return tuple(w for w, own in others.items() if not own.levels or level in own.levels)

        def without(level: str) -> tuple[str, ...]:
            return self._under(PolicyWords(at(level) or _STOCK))

        summary, left = self._kept(with_summary=with_summary)
        by_level = {}
        for level, word in self.reading.items():
            policy = self.stored[word].place
            assert isinstance(policy, Path)  # "default" reads no summary
            alone = PolicyWords((word, *at(level)))
            full = replace(alone, overrides=left, summary=summary)
            by_level[level] = scripts.WithSummary(
                policy, without(level), self._under(alone), self._under(full)
            )
        levels = dict.fromkeys(level for own in others.values() for level in own.levels)
        plain = (*(level for level in levels if level not in by_level), scripts.ELSEWHERE)
        by_others = {level: without(level) for level in plain}
        return scripts.Options(by_level, by_others, *self._by_lto())

    def write(self, mode: str, *, with_summary: bool) -> bool:
        """Write the compilers, and remember them if later builds can use them as they are.

        :return: whether one changed.
        """
        summary, left = self._kept(with_summary=with_summary)
        asked_for = PolicyWords(tuple(self.stored), left, summary, llvm=self.own.llvm)
        memory = command.Memory(asked_for)
        options = self.options(with_summary=with_summary)
        toolchain = self.plugin.toolchain
        changed = scripts.write(self.place, toolchain, options, mode)
        if mode == POLICY and (summary is not None or not self.reading):
            found = command.Ingredients(self.plugin, choose(asked_for, _PROBLEMS))
            stamps = memory.stamps(found)
            # A build takes minutes, in which the user may have written another policy.
            places = {own.place for own in self.stored.values() if isinstance(own.place, Path)}
            if stamps is not None and places <= set(found.files):
                folder = compilers_folder(self.own.folder)
                files = [f"{folder}/{name}" for name in compiler_names(toolchain.major)]
                files += [self.own.summary, self.own.left]  # whether they are there or not
                again.keep(self.own, stamps | remembered.stamps(files))
        return changed

    def _kept(self, *, with_summary: bool) -> tuple[str | None, tuple[str, ...]]:
        """Return the summary and the overrides that are there and are to be used."""
        own = self.own
        if not with_summary or not self.reading or not Path(own.summary).is_file():
            return None, ()
        return own.summary, (own.left,) if Path(own.left).is_file() else ()

    @cached_property
    def in_links(self) -> tuple[str, ...]:
        """The policies that decide in links by LTO; none without LLVM's lld.

        Those that read a summary or were made without LTO do not, and neither do portfolios, which
        thin LTO cannot try.
        """
        if not self.plugin.toolchain.lld.exists():
            return ()
        if tuple(self.stored) == USUAL_POLICIES:
            return USUAL_INSIDE_LTO
        without = {*self.reading.values(), *in_lto().unmade}
        able = (name for name in made_for(tuple(self.stored), lto=True) if name not in without)
        return tuple(name for name in able if not _stored(name).is_portfolio)

    def _by_lto(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """Return the options of links by LTO, and the levels for which they are."""
        if not self.in_links:
            return (), None
        choice = choose(PolicyWords(self.in_links), _PROBLEMS)
        problems = [_PROBLEMS[name] for name in choice.problems]
        levels = tuple(level for own in problems for level in own.levels)
        options = command.Ingredients(self.plugin, choice).link_options()
        return tuple(options), levels if all(own.levels for own in problems) else None

    def _under(self, words: PolicyWords) -> tuple[str, ...]:
        choice = choose(words, _PROBLEMS)
        return tuple(command.Ingredients(self.plugin, choice).compile_options())


def prepare(own: Words) -> Compilers:
    """Find the policies and the plugin that a build needs.

    :raises NestorError: if one of them cannot be used, or not together.
    """
    choice = choose(PolicyWords(own.policies, llvm=own.llvm), _PROBLEMS)
    stored = {word: _stored(word) for word in own.policies}
    plugin = passed_plugin(own.llvm, choice.problems, report_once)
    return Compilers(own, Path(own.folder), stored, plugin)


def _stored(word: str) -> StoredPolicy:
    return stored_policy(word, list(_PROBLEMS))
