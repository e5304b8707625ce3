"""``python -m nestor``: the command line, where its script is not on PATH."""

from nestor.cli.start import entry

if __name__ == "__main__":
    entry()
