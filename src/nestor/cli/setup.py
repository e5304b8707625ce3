"""What most commands begin with: a toolchain, its plugin and a pool of compilers."""

from nestor.compiler.identity import require
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.toolchain import find
from nestor.progress import Progress


def ready_plugin(llvm: str | None, progress: Progress) -> Plugin:
    """Return the plugin of the toolchain to use, built and through the identity gate.

    :raises ToolchainError: if there is no usable LLVM, or it does not pass.
    """
    return require(ensure_plugin(find(llvm), progress))
