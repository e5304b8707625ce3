"""Find a minimal set of elements under which a test fails, in few tests.

The method is QuickXplain (Junker, AAAI 2004): halves are added to a background until the test
fails, so a minimal set of ``k`` of ``n`` elements takes about ``2 k log2(n / k) + 2 k`` tests. One
step is added: as soon as some elements are found they are tried without any background, which
halves the tests for a single culprit.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Element = TypeVar("Element")


def minimal_failing(
    elements: Sequence[Element], fails: Callable[[Sequence[Element]], bool]
) -> list[Element]:
    """Return elements that fail together, and of which no one can be left out.

    If a superset of what fails can pass, the result still fails, but may have elements to spare.

    :param elements: they fail together, and nothing fails without any of them.
    :param fails: runs the test of some elements, which keep their order.
    :return: in the order of ``elements``.
    """
    found = _Search(elements, fails).run()
    return [element for number, element in enumerate(elements) if number in found]


class _Search(Generic[Element]):
    """One search; elements are known by their numbers."""

    def __init__(
        self, elements: Sequence[Element], fails: Callable[[Sequence[Element]], bool]
    ) -> None:
        self._elements = elements
        self._test = fails
        self._results: dict[frozenset[int], bool] = {frozenset(range(len(elements))): True}
        self._results.setdefault(frozenset(), False)

    def run(self) -> frozenset[int]:
        try:
            return self._explain(frozenset(), grown=False, among=range(len(self._elements)))
        except _EnoughError as enough:
            return enough.found

    def _fails(self, numbers: frozenset[int]) -> bool:
        if numbers not in self._results:
            chosen = [self._elements[number] for number in sorted(numbers)]
            self._results[numbers] = self._test(chosen)
        return self._results[numbers]

    def _explain(
        self, background: frozenset[int], *, grown: bool, among: Sequence[int]
    ) -> frozenset[int]:
        """Return a minimal part of ``among`` that fails together with ``background``.

        :param grown: whether the background is larger than at the last test of it.
        """
        if grown and self._fails(background):
            return frozenset()
        if len(among) <= 1:
            return frozenset(among)
        first, second = among[: len(among) // 2], among[len(among) // 2 :]
        later = self._explain(background | frozenset(first), grown=True, among=second)
        if later and background | later != frozenset(among) and self._fails(later):
            raise _EnoughError(later)
        earlier = self._explain(background | later, grown=bool(later), among=first)
        return earlier | later


class _EnoughError(Exception):
    """What was found fails by itself."""

    def __init__(self, found: frozenset[int]) -> None:
        super().__init__()
        self.found = found
