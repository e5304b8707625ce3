"""The names of what lies in the folder of a corpus. Imported by the compiler wrapper."""

from typing import Final

MANIFEST: Final = "manifest.json"
"""Our description: modules, programs, projects."""
DESCRIPTION: Final = "corpus_description.json"
"""LLVM's list of the modules."""
JOURNAL: Final = ".journal"
"""The folder in which compiler wrappers leave what becomes a corpus."""
LIMIT: Final = 256 << 20
"""The most bytes of any file of a corpus."""
LOCK: Final = ".lock"
"""The file whose lock a process holds while it changes the corpus."""
