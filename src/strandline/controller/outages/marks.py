"""When a zone or a region is down, and when it is back: two marks, with a gap between them. Pure.

Why:    With one mark, a zone that is half back would come and go with each broker, and repair that
        is held and released by turns copies everything after all. Regions may have other marks than
        zones, and single domains their own (`config.outage_marks`).
How:        UP --share of live brokers < low, and enough are silent--> DOWN
            DOWN --share >= high, or no broker is silent--> UP
        Between the marks nothing changes. One silent broker is a broker's failure, whatever its
        share of the zone. So one silent broker does not keep a zone down either (in a zone of two,
        the other one may never return), unless a high mark of 100 requires all.
Owns:   nothing: the caller passes the present state of a domain.
Source: design section 8; BookKeeper's zone aware placement at Salesforce for the two marks."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from strandline.config.cluster import ClusterConfig
from strandline.config.outage_marks import OutageMarks
from strandline.model.cluster import Domain

PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Of a zone or region. A `high_percent` below `low_percent` counts as that."""

    low_percent: int = 50
    high_percent: int = 66
    silent_min: int = 2
    """How many brokers must be silent, at least."""

    @property
    def back_percent(self) -> int:
        """The high mark, never below the low one."""
        return max(self.high_percent, self.low_percent)


MarksOf = Callable[[Domain], Marks]


def everywhere(marks: Marks = Marks()) -> MarksOf:
    """The same marks for all."""
    return lambda domain: marks


def configured(config: ClusterConfig) -> MarksOf:
    """The marks of each domain by the cluster's configuration."""
    usual = Marks(
        low_percent=config.outage_low_percent,
        high_percent=config.outage_high_percent,
        silent_min=config.outage_brokers_min,
    )
    others = OutageMarks(config.outage_marks)

    def marks_of(domain: Domain) -> Marks:
        pair = others.of(domain)
        if pair is None:
            return usual
        return replace(usual, low_percent=pair[0], high_percent=pair[1])

    return marks_of


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a domain's brokers are silent, without those in planned maintenance.
    `planned_silent`: how many of the planned ones are silent."""

    total: int
    silent: int
    planned_silent: int = 0

    def is_below(self, percent: int) -> bool:
        """Whether less than this share of the domain lives."""
        return (self.total - self.silent) * PERCENT < self.total * percent


def is_down(share: Share, marks: Marks, *, was_down: bool) -> bool:
    """Whether the domain is down now."""
    away = share.silent + share.planned_silent
    if was_down and (away > 1 or marks.back_percent >= PERCENT):
        return share.silent > 0 and share.is_below(marks.back_percent)
    return share.silent > 0 and away >= marks.silent_min and share.is_below(marks.low_percent)


def silent_needed(total: int, marks: Marks) -> int | None:
    """How many of a domain's brokers must be silent before it is down; None: it never is."""
    counts = range(marks.silent_min, total + 1)
    return next((one for one in counts if Share(total, one).is_below(marks.low_percent)), None)
