"""Help is quick: nothing that only the work needs is imported for it."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "lightgbm", "pyarrow", "scipy", "lief", "iced_x86", "numpy", "safetensors")
"""What takes from 30 ms to seconds to import."""


@pytest.mark.parametrize(
    "words",
    [
        "blocks extract", "blocks info", "blocks measure", "blocks sweep",
        "costmodel train", "costmodel evaluate", "costmodel predict", "costmodel explain",
    ],
)  # fmt: skip
def test_help_imports_nothing_heavy(words: str) -> None:
    code = (
        "import sys\n"
        "from nestor.cli.main import main\n"
        "try:\n"
        f"    main({[*words.split(), '--help']!r})\n"
        "except SystemExit as left:\n"
        "    assert left.code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert f"usage: nestor {words}" in done.stdout
    assert "Examples:" in done.stdout
    assert "--no-" not in done.stdout, "options say what they do, not what they keep from happening"
    assert done.stderr.strip() == "[]"
