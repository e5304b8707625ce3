"""The jobs for continuous integration are YAML, and their ``nestor`` lines are commands."""

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nestor.cli.commands import COMMANDS, PASS_THROUGH
from tests.docs.pages import ROOT
from tests.docs.test_commands import options

FOLDER: Final = ROOT / "docs" / "guide" / "ci"
JOBS: Final = sorted(FOLDER.glob("*.yml"))
_CALL: Final = re.compile(r"(?:^|[\s(])nestor ((?:[a-z-]+)[^\n)]*)")


def scripts(content: Any) -> list[str]:
    """Return the lines of shell in a job, wherever they stand in it."""
    found: list[str] = []
    if isinstance(content, dict):
        for key, value in content.items():
            if key in ("run", "script", "before_script"):
                found += value if isinstance(value, list) else [value]
            else:
                found += scripts(value)
    elif isinstance(content, list):
        for value in content:
            found += scripts(value)
    return found


@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.name)
def test_its_lines_are_commands_with_such_options(job: Path) -> None:
    lines = scripts(yaml.safe_load(job.read_text()))
    calls = [call for line in lines for call in _CALL.findall(line)]
    named = set()
    for call in calls:
        words = shlex.split(call)
        assert words[0] in COMMANDS | PASS_THROUGH, call
        named.add(words[0])
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options(words[0]), call
    assert {"size-check", "flags"} <= named
    assert job.name in (FOLDER.parent / "continuous-integration.md").read_text()


def test_both_services_have_one() -> None:
    assert [path.name.partition("-")[0] for path in JOBS] == ["github", "gitlab"]


@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.name)
def test_its_shell_is_sound(job: Path) -> None:
    import subprocess

    for script in scripts(yaml.safe_load(job.read_text())):
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
