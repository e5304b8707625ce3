"""A workbench for the plugin's tests."""

from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from tests.plugin.support import Workbench


@pytest.fixture
def bench(plugin: Plugin, tmp_path: Path) -> Workbench:
    return Workbench(plugin, tmp_path)
