"""Where the command ``nestor`` begins.

``nestor clang`` starts once per source file of a build, so a compiler that is remembered is
started before anything else is imported.
"""

import sys

from nestor.cli.make.place import hide_compilers


def entry() -> None:
    """Run the command line and exit (the console script)."""
    words = sys.argv[1:]
    hide_compilers()
    if words and words[0] in ("clang", "clang++", "flags"):
        from nestor.cli.use import quick

        status = quick.run(words[0], words[1:])
        if status is not None:
            sys.exit(status)
    if words and words[0] == "make":
        from nestor.cli.make import quick as quick_make

        quick_make.run(words[1:])
    from nestor.cli import main

    main.entry()
