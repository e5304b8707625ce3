"""The error of reading and counting events, apart from what takes pyarrow."""

from nestor.errors import NestorError


class EventsError(NestorError):
    """Events that cannot be collected, read or used; the text says what to do."""
