"""The compiler with the plugin's options about register allocation."""

import pytest

from tests.plugin.regalloc.support import Allocator
from tests.plugin.support import Workbench


@pytest.fixture
def allocator(bench: Workbench) -> Allocator:
    return Allocator(bench)
