"""Keep the profile that a build compiles with (``-fprofile-use``), for the modules it was used on.

Counts of the middle end are read while a module is optimised, so the profile belongs to the module.
Those of the front end (``-fprofile-instr-generate``) are in its bitcode already.
"""

from collections.abc import Sequence
from pathlib import Path

from nestor.compiler.profile_option import KIND, PATH, profile_option, without_profile
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import LIMIT
from nestor.files import ReadError, read_regular


def with_kept_profile(arguments: Sequence[str], journal: Journal) -> list[str]:
    """Return a cc1 line that names its profile by what is in it, which ``journal`` keeps.

    A profile that cannot be read stays in the line by its path, which no corpus replays: it is
    counted there among the options left out.
    """
    paths = [word for word in arguments if word.startswith(PATH)]
    if not paths:
        return list(arguments)
    if f"{KIND}clang" in arguments:
        return list(without_profile(arguments))
    try:
        content = read_regular(Path(paths[-1].removeprefix(PATH)), "a profile", limit=LIMIT)
    except ReadError:
        return list(arguments)
    own = profile_option(journal.add_profile(content))
    return [own if word == paths[-1] else word for word in arguments if word not in paths[:-1]]
