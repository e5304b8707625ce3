"""Whether a compiler can read the bitcode of a corpus."""

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, CorpusError


def require_readable(corpus: Corpus, toolchain: Toolchain) -> None:
    """Refuse a corpus that a newer LLVM has captured: bitcode is read by later releases only.

    :raises CorpusError: with both releases.
    """
    made = corpus.toolchain.partition(".")[0]
    if made.isdigit() and int(made) > toolchain.major:
        raise CorpusError(
            f"The corpus {corpus.root} was captured by LLVM {corpus.toolchain}, and LLVM"
            f" {toolchain.version} in {toolchain.prefix} cannot read its modules: capture it again"
            f" with this LLVM, or use LLVM {made} or newer."
        )
