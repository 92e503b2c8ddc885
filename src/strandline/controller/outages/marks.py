"""When a zone or a region is down, and when it is back: two marks, with a gap between them. Pure.

Why:    one mark would make a zone that is half back come and go with each broker; what is held and
        released by turns is copied after all.
How:        UP --share of live brokers < low, and enough are silent--> DOWN
            DOWN --share >= high, or nobody is silent--> UP
        Between the marks it stays as it is. One silent broker is a broker's failure, whatever share
        of its zone it is.
Owns:   nothing: what a domain is now is handed in.
Source: design section 8; BookKeeper's zone aware placement at Salesforce for the two marks."""

from dataclasses import dataclass

PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The cluster's configuration. A `high_percent` below `low_percent` counts as that."""

    low_percent: int = 50
    high_percent: int = 66
    silent_min: int = 2
    """So many brokers have to be silent, at least."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a domain's brokers are silent; without those of which that is wanted."""

    total: int
    silent: int

    def is_below(self, percent: int) -> bool:
        """Whether less than so much of it lives."""
        return (self.total - self.silent) * PERCENT < self.total * percent


def is_down(share: Share, marks: Marks, *, was_down: bool) -> bool:
    """Whether the domain is down now."""
    if was_down:
        high = max(marks.high_percent, marks.low_percent)
        return share.silent > 0 and share.is_below(high)
    return share.silent >= marks.silent_min and share.is_below(marks.low_percent)
