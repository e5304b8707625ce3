"""Let another program take the place of this process, as a shell's ``exec`` does.

Imports next to nothing: compiles wait for this module.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Never


def become(command: Sequence[str], environment: Mapping[str, str]) -> Never:
    """Run ``command``, which is looked for on the ``PATH`` of ``environment``, in this process.

    :raises OSError: if it cannot be started.
    """
    sys.stdout.flush()
    _end_by_broken_pipes()
    os.execvpe(command[0], list(command), environment)  # noqa: S606  as the user asked


def _end_by_broken_pipes() -> None:
    """Let what is started end when nobody reads what it writes; Python itself ignores the signal.

    A build whose programs inherited that would print errors for ``yes | head``.
    """
    try:  # what the module signal is made of: its enumerations take 5 ms
        import _signal as signal  # type: ignore[import-not-found]
    except ImportError:
        import signal
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
