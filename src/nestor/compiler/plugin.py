"""Build the plugin for exactly one toolchain, once, and keep it.

The plugin is C++ against LLVM's headers, so a shared object fits one compiler only. The cache
is keyed by the compiler's build id and the plugin's sources: a new compiler or a new Nestor
builds anew, everything else starts at once.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from nestor.compiler.built import build_once, digest_of, is_complete
from nestor.compiler.cache import cache_place
from nestor.compiler.process import run_tool
from nestor.compiler.toolchain import Toolchain, ToolchainError, capabilities
from nestor.files import replacing, sha256_of
from nestor.messages import build_error
from nestor.progress import Progress, silent

LOADS_BEFORE_OPTIONS: Final = 22
"""The first release whose clang loads plugins of passes before it parses options of LLVM."""

FILE_NAME: Final = "nestor.plugin"
"""Not ``nestor.so``: Meson and others take any word of a compile that ends so for a library."""

_PARTS: Final = "nestor-parts.a"


@dataclass(frozen=True)
class Plugin:
    """A built plugin and the toolchain that may load it."""

    toolchain: Toolchain
    path: Path

    def words(self, options: Sequence[str] = ()) -> list[str]:
        """Return words for ``clang -cc1`` that load the plugin and give it ``options``."""
        return [*self._load(("-load",)), *(w for o in options for w in ("-mllvm", o))]

    def driver_words(self, options: Sequence[str] = ()) -> list[str]:
        """Return words for clang's driver that load the plugin and give it ``options``.

        -Xclang passes each word to the compiler proper only: neither the assembler, which has no
        plugins, nor a link sees it.
        """
        words = [w for option in options for w in ("-mllvm", option)]
        load = self._load(("-Xclang", "-load", "-Xclang"))
        return [*load, *(w for word in words for w in ("-Xclang", word))]

    def _load(self, early: Sequence[str]) -> list[str]:
        """Return words that load the plugin; ``early`` those that load any library at once.

        Before release 22 clang loaded the plugins of passes after it had parsed their options.
        """
        load = f"-fpass-plugin={self.path}"
        at_once = self.toolchain.major < LOADS_BEFORE_OPTIONS
        return [*early, str(self.path), load] if at_once else [load]

    @property
    def digest(self) -> str:
        """SHA-256 of the shared object."""
        return sha256_of(self.path)


def as_taken_by(command: Sequence[str | Path], words: Sequence[str]) -> list[str]:
    """Return :meth:`Plugin.words` for ``command``, which may be of ``clang -cc1`` or of its driver.

    The driver has another way to say ``-load``.
    """
    if "-cc1" in command:
        return list(words)
    taken = {"-load": ("-Xclang", "-load", "-Xclang")}
    return [part for word in words for part in taken.get(word, (word,))]


def cache_folder() -> Path:
    """Return where plugins and baselines are kept (``NESTOR_CACHE``, or the user's cache)."""
    return Path(cache_place())


def source_folder() -> Path:
    """Return the folder that holds ``plugin`` and ``policy``, the plugin's C++ sources."""
    return Path(str(resources.files("nestor"))) / "native"


def source_files() -> list[Path]:
    """Return the files of which the plugin is built."""
    folders = (source_folder() / name for name in ("plugin", "policy"))
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def sources_digest(builder: str) -> str:
    """Return 24 hex digits that change with the plugin's sources or with who builds them."""
    policy = digest_of(source_folder() / "policy", builder)
    return digest_of(source_folder() / "plugin", policy)


def plugin_path(toolchain: Toolchain) -> Path:
    """Return where the plugin for ``toolchain`` is or will be."""
    return cache_folder() / "plugins" / sources_digest(toolchain.build_id) / FILE_NAME


def parts_path(toolchain: Toolchain) -> Path:
    """Return where the archive of the parts of the plugin for ``toolchain`` is or will be.

    A plugin is linked of them and of the policies that it carries (``native/policy/Embedded.h``).
    """
    return plugin_path(toolchain).with_name(_PARTS)


def keep_parts(toolchain: Toolchain, build: Path) -> None:
    """Keep the parts that were compiled in the folder ``build``, in the place of others."""
    with replacing(parts_path(toolchain)) as scratch:
        shutil.copy2(build / _PARTS, scratch)


def ensure_plugin(toolchain: Toolchain, progress: Progress = silent) -> Plugin:
    """Return the plugin for ``toolchain``, building it if need be (about 35 CPU-seconds).

    Safe to call from several processes at once: one builds, the others wait.

    :raises ToolchainError: if the toolchain cannot have a plugin or the build fails.
    """
    path = plugin_path(toolchain)
    if not is_complete(path):
        problem = capabilities(toolchain).problem()
        if problem:
            raise ToolchainError(f"LLVM {toolchain.version} in {toolchain.prefix}: {problem}.")

        def build(folder: Path) -> Path:
            configure_and_build(toolchain, folder, progress=progress)
            keep_parts(toolchain, folder)
            return folder / FILE_NAME

        build_once(path, build)
    return Plugin(toolchain, path)


def configure_and_build(
    toolchain: Toolchain, build: Path, definitions: Sequence[str] = (), progress: Progress = silent
) -> None:
    """Run CMake on the plugin's sources in the folder ``build``."""
    cmake = shutil.which("cmake")
    if cmake is None:
        raise ToolchainError("CMake is needed to build the plugin: install the package cmake.")
    jobs = str(os.cpu_count() or 1)
    steps = [
        [
            cmake,
            *("-S", str(source_folder() / "plugin"), "-B", str(build)),
            f"-DLLVM_DIR={toolchain.prefix}/lib/cmake/llvm",
            f"-DCMAKE_C_COMPILER={toolchain.clang}",
            f"-DCMAKE_CXX_COMPILER={toolchain.clangxx}",
            *definitions,
        ],
        [cmake, "--build", str(build), "-j", jobs],
    ]
    stage = f"Building the plugin for clang {toolchain.version}"
    for number, step in enumerate(steps):
        progress(stage, number, len(steps))
        done = run_tool(step)
        if done.returncode != 0:
            said = build_error(done.stdout + done.stderr) or "no message"
            raise ToolchainError(
                f"The plugin could not be built for LLVM {toolchain.version}: {said}"
                f" (to see everything: cmake -S {source_folder() / 'plugin'} -B build)."
            )
    progress(stage, len(steps), len(steps))
