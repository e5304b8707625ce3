"""The error of commands that read their words themselves. Imports nothing."""


class WrongWordsError(ValueError):
    """What is wrong with a command line, in a sentence."""
