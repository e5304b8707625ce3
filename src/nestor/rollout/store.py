"""Files by the hash of their content, in one folder of this machine."""

import hashlib
import shutil
import threading
from collections import Counter
from pathlib import Path

from nestor.files import replacing, sha256_of


class FileStore:
    """Keeps each content once (:class:`nestor.problem.rollout.Store`); safe for many threads."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._uses: Counter[str] = Counter()
        self._lock = threading.Lock()

    def put(self, file: Path) -> str:
        """Copy ``file`` in and return its SHA-256."""
        digest = sha256_of(file)
        target = self.path(digest)
        with self._lock:
            self._uses[digest] += 1
            if not target.exists():
                with replacing(target) as scratch:
                    shutil.copyfile(file, scratch)
        return digest

    def write(self, content: bytes) -> Path:
        """Return a file with ``content``."""
        target = self.path(hashlib.sha256(content).hexdigest())
        if not target.exists():
            with replacing(target) as scratch:
                scratch.write_bytes(content)
        return target

    def path(self, digest: str) -> Path:
        """Return where the file of this SHA-256 is, or would be."""
        return self._folder / digest[:2] / digest

    def release(self, digest: str) -> None:
        """Take one :meth:`put` of this content back, and delete what has none left."""
        with self._lock:
            self._uses[digest] -= 1
            if self._uses[digest] <= 0:
                del self._uses[digest]
                self.path(digest).unlink(missing_ok=True)
