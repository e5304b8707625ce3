"""What is simulated: the sizes of caches, and whether lines are fetched ahead."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from nestor.events.errors import EventsError

_LINE: Final = 64
_SIZE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_FIRST_SETS: Final = 64
_MOST_WAYS: Final = 64
_MOST_SETS: Final = 1 << 22


@dataclass(frozen=True)
class Caches:
    """A recent server core, unless changed; lines are of 64 bytes, pages of 4 KiB."""

    l1_kib: int = 48
    """First level for data; a multiple of 4."""
    l1_code_kib: int = 32
    """First level for code; a multiple of 4."""
    l2_kib: int = 2048
    """Second level, in 16 ways; a power of two."""
    llc_kib: int = 32768
    """Last level, in 16 ways."""
    tlb_entries: int = 2048
    """Second level of the TLB, in 16 ways; a power of two."""
    prefetch: bool = True
    """Fetch lines ahead where accesses have a stride or run along a page."""

    def options(self) -> list[str]:
        """Return the tool's options.

        :raises EventsError: if a size is none that the tool simulates.
        """
        first = _FIRST_SETS * _LINE >> 10
        second, third = (self.l2_kib << 10) // (16 * _LINE), (self.llc_kib << 10) // (16 * _LINE)
        tlb = self.tlb_entries // 16
        fits = (
            all(
                size % first == 0 and 0 < size // first <= _MOST_WAYS
                for size in (self.l1_kib, self.l1_code_kib)
            )
            and all(0 < sets <= _MOST_SETS for sets in (second, third, tlb))
            and second & (second - 1) == 0
            and tlb & (tlb - 1) == 0
        )
        if not fits:
            raise EventsError(
                "Such caches cannot be simulated: the first level is 4 to 256 KiB in steps of 4,"
                " the second level and the TLB are a power of two, the last level is at most 4 GiB."
            )
        return [
            f"--data-ways={self.l1_kib // first}",
            f"--code-ways={self.l1_code_kib // first}",
            f"--second-sets={second}",
            f"--third-sets={third}",
            f"--tlb-sets={tlb}",
            f"--prefetch={'yes' if self.prefetch else 'no'}",
        ]

    def described(self) -> dict[str, str]:
        """Return the sizes as texts."""
        return {name: str(value) for name, value in asdict(self).items()}


def caches_of(settings: Mapping[str, str]) -> Caches:
    """Return the caches that :meth:`Caches.described` described; the usual ones if none are."""
    sizes: dict[str, Any] = {
        field.name: int(settings[field.name])
        for field in fields(Caches)
        if field.type is int and _SIZE.fullmatch(str(settings.get(field.name, "")))
    }
    found = replace(Caches(), **sizes)
    try:
        found.options()
    except EventsError:
        return Caches()
    return found
