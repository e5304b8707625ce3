"""The one kind of error that a user is meant to read."""


class NestorError(Exception):
    """A problem that the user can mend: its text is one sentence with the remedy.

    The command line prints the text without a traceback and exits with 1. Anything else that
    is raised is a bug in Nestor and keeps its traceback.
    """
