"""Whether a compiler can read the bitcode of a corpus."""

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, CorpusError


def require_readable(corpus: Corpus, toolchain: Toolchain) -> None:
    """Refuse a corpus that a newer LLVM has captured: bitcode is read by later releases only.

    :raises CorpusError: with both releases.
    """
    captured_by = corpus.toolchain.partition(".")[0]
    if captured_by.isdigit() and int(captured_by) > toolchain.major:
        raise CorpusError(
            f"The corpus {corpus.root} was captured by LLVM {corpus.toolchain}, and LLVM"
            f" {toolchain.version} in {toolchain.prefix} cannot read its modules: capture it again"
            f" with this LLVM, or use LLVM {captured_by} or newer."
        )
