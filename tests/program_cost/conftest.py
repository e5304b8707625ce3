"""Programs to count, compiled as for the tests of events."""

from tests.events.conftest import compiled

__all__ = ["compiled"]
