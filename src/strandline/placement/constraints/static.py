"""Constraints on the broker alone: decided once for each candidate, then a mask."""

from collections.abc import Callable

from strandline.placement.constraints.contract import HardEvaluator, Seats, Shape
from strandline.placement.constraints.reasons import Reason
from strandline.placement.topology.universe import Candidate

Judge = Callable[[Candidate], Reason | None]
"""None: eligible."""


class StaticEvaluator(HardEvaluator):
    """Asks `judge` about each candidate once."""

    is_static = True

    def __init__(
        self, shape: Shape, scope: int, name: str, judge: Judge, *, title: str = ""
    ) -> None:
        super().__init__(shape, scope)
        self.name = name
        self.title = title
        self._reasons = {
            bit: reason
            for bit, one in enumerate(self.universe.candidates)
            if (reason := judge(one)) is not None
        }
        self._mask = self.universe.all & ~self.universe.mask(self._reasons)

    def eligible(self, seats: Seats, group: int) -> int:
        """See the base class."""
        return self._mask if self.scope >> group & 1 else self.universe.all

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        """See the base class."""
        return self._reasons[bit]

    def most(self, allowed: int) -> int:
        """See the base class."""
        return (allowed & self._mask).bit_count()
