"""Keep what the stock compiler makes of units, so that it need not compile them again.

What a policy does is judged against stock, and stock is the same for every policy. So the objects
of the stock compiler are kept in the cache, by what they depend on (:mod:`nestor.rollout.cache`),
and measured again when they are needed.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent
from nestor.rollout.cache import baseline_path
from nestor.rollout.kept import is_whole, keep
from nestor.rollout.layered import LayeredPool


class StockKeepingPool(LayeredPool):
    """A pool that compiles a unit by the stock compiler once for all times.

    A rollout whose object was kept has no CPU seconds: nothing was compiled. Problems whose outcome
    cannot be read off an object are compiled as ever.
    """

    def __init__(self, below: Pool, *, fresh: bool = False):
        """Stand for ``below``.

        :param fresh: use nothing that was kept, but keep what is compiled now.
        """
        super().__init__(below)
        self._fresh = fresh

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Run the requests of which nothing was kept; rollouts in the order of the requests."""
        if not self.problem.outcome_in_object:
            return self.below.run(requests, progress, stage)
        stock = [] if self._fresh else [one for one in requests if _is_stock(one)]
        there = [one for one in stock if is_whole(self._path(one))]
        found = self.map(self._read, there, progress, "Reading stock objects") if there else []
        done = {rollout.request: rollout for rollout in found}
        missing = [one for one in requests if one not in done]
        compiled = self.below.run(missing, progress, stage) if missing else []
        done |= zip(missing, compiled, strict=True)
        for rollout in compiled:
            if rollout.object is not None and _is_stock(rollout.request):
                with contextlib.suppress(OSError):  # a full disk costs time, but no result
                    keep(self.objects.path(rollout.object), self._path(rollout.request))
        return [done[one] for one in requests]

    def _read(self, request: Request) -> Rollout:
        """Return the rollout of an object that was kept."""
        path = self._path(request)
        kept = self.objects.put(path) if request.keep else None
        return Rollout(request, self.problem.outcome_of(path), None, 0.0, None, kept)

    def _path(self, request: Request) -> Path:
        return baseline_path(self, request.unit, None)


def _is_stock(request: Request) -> bool:
    """Tell whether nothing but the stock compiler decides in a request, and nothing is observed."""
    return request == Request(request.unit, keep=request.keep)
