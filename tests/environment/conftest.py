"""The environment of inlining for size, open for one test."""

from collections.abc import Iterator

import pytest

from nestor.environment import CompileEnvironment
from tests.environment.episodes import inlining


@pytest.fixture
def env() -> Iterator[CompileEnvironment]:
    """The environment on the built-in module."""
    made = inlining()
    yield made
    made.close()
