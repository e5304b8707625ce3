"""Release a policy: check that it can take the form, make the files, and write them."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.policy.names import NamedPolicy
from nestor.progress import Progress, silent
from nestor.release import llvm_header, mlir, packages
from nestor.release.in_tree import ReleaseError, in_tree_policy
from nestor.release.plugin import (
    build_plugin,
    check_objects,
    check_policies,
    levels_in_words,
    usual_level,
)
from nestor.release.tflite import export

Form = Literal["plugin", "llvm-header", "mlir", "tflite"]

_DIGITS: Final = 16
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+)*", re.ASCII)


@dataclass(frozen=True)
class ReleaseSettings:
    """What a released plugin and its packages are called."""

    name: str | None = None
    """Of the plugin and its packages (default: the policies')."""
    version: str = "0.1.0"
    """Of the packages."""


@dataclass(frozen=True)
class Released:
    """What was written."""

    form: Form
    files: tuple[Path, ...]
    compile_flags: tuple[str, ...] = ()
    """Of clang, for compiles; for a plugin only."""
    link_flags: tuple[str, ...] = ()
    """Of clang, for links by LTO."""
    remark: str | None = None
    """What is missing and why."""
    level: str = ""
    """An optimisation level at which the policies decide; for a plugin only."""


def release_in_tree(named: NamedPolicy, form: Form, out: Path, toolchain: Toolchain) -> Released:
    """Write a policy as a model of LLVM itself.

    :param form: any but ``plugin``.
    :param toolchain: whose headers say what LLVM's own features are.
    :raises ReleaseError: if the policy cannot be that.
    """
    policy = in_tree_policy(named, form, toolchain)
    content: Mapping[str, bytes | str]
    if form == "llvm-header":
        content = llvm_header.files(policy, named.name, named.digest, toolchain)
    elif form == "mlir":
        content = {mlir.FILE: mlir.module(policy)}
    else:
        content = export.files(policy, named.name)
    return Released(form, _written(out, content))


def release_plugin(
    policies: Sequence[NamedPolicy],
    out: Path,
    plugin: Plugin,
    settings: ReleaseSettings | None = None,
    progress: Progress = silent,
) -> Released:
    """Write a plugin that carries ``policies``, with flags and packages.

    ``out`` is a prefix: it has ``lib/nestor`` and ``lib/cmake``, and may be copied anywhere. The
    Debian package, which holds the same for ``/usr``, lies beside them.

    :param policies: for different problems.
    :param plugin: the usual plugin of the toolchain, through the identity gate.
    :raises ReleaseError: if the policies or the names cannot be used.
    :raises ToolchainError: if the plugin cannot be built.
    """
    settings = settings or ReleaseSettings()
    check_policies(policies)
    contents = _contents(policies, settings)
    toolchain = plugin.toolchain
    content = build_plugin(toolchain, policies, progress)
    check_objects(plugin, content, policies)
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    contents = replace(contents, plugin=f"{contents.name}-{digest}.plugin")
    place = f"lib/nestor/{contents.plugin}"
    files: dict[str, bytes | str] = {place: content}
    files |= packages.side_files(contents, toolchain)
    remark = None
    if packages.is_of_debian(toolchain):
        package = packages.debian_package(files, contents, toolchain)
        if package is None:
            remark = "there is no Debian package, since dpkg-deb is not installed"
        else:
            files[package[0]] = package[1]
    else:
        remark = "there is no Debian package, since this LLVM is not one of Debian's packages"
    written = _written(out, files)
    path = (out / place).absolute()
    return Released(
        "plugin",
        written,
        (f"-fpass-plugin={path}",),
        ("-fuse-ld=lld", f"-Wl,--load-pass-plugin={path}"),
        remark,
        usual_level(policies),
    )


def _contents(policies: Sequence[NamedPolicy], settings: ReleaseSettings) -> packages.Contents:
    stems = [Path(named.name).name.removesuffix(".safetensors").lower() for named in policies]
    name = settings.name or "-".join(re.sub(r"[^a-z0-9]+", "-", stem).strip("-") for stem in stems)
    if not _NAME.fullmatch(name):
        raise ReleaseError(
            f"{name!a} cannot be the name of a package: give words of a-z and 0-9 with hyphens"
            " between them as --name."
        )
    if not _VERSION.fullmatch(settings.version):
        raise ReleaseError(
            f"{settings.version!a} cannot be the version of a package: give digits with dots"
            " between them."
        )
    names = [f"'{stem}'" if _NAME.fullmatch(stem) else "of your own" for stem in stems]
    return packages.Contents(
        name, "", packages.title_of(names), levels_in_words(policies), settings.version
    )


def _written(out: Path, files: Mapping[str, bytes | str]) -> tuple[Path, ...]:
    try:
        for path, content in files.items():
            write_atomically(out / path, content)
    except OSError as error:
        place = error.filename or out
        raise NestorError(f"{place} cannot be written: {error.strerror}.") from None
    return tuple(out / path for path in files)
