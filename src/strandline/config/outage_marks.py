"""The table of outage marks: which share of live brokers makes a zone or region down or up.

Why:    one pair of marks does not fit all. A region of three zones is not lost with its first zone;
        a zone of three brokers nearly is with its second broker.
How:    `WHERE=LOW-HIGH`, two shares of live brokers in percent. WHERE is a region by its name, or a
        zone as region/zone; `*` stands for all regions, `*/*` for all zones, `west/*` for those of
        one region. Of the matching rows, the narrowest counts.
Owns:   nothing.
Source: decision 0018."""

from collections.abc import Iterable

from strandline.config.addresses import check_label
from strandline.config.keys import Value

ALL = "*"
SEPARATOR = "/"
PERCENT_MAX = 100
_ZONE_DEPTH = 2

Where = tuple[str, ...]
"""(region,) or (region, zone), as in `Domain`; `ALL` matches any."""
Pair = tuple[int, int]
"""(low, high), in percent"""


def parse_outage_marks(text: str) -> tuple[Where, Pair]:
    """Read `WHERE=LOW-HIGH`; raises ValueError with the reason."""
    name, sign, marks = (part.strip() for part in text.partition("="))
    low, dash, high = (part.strip() for part in marks.partition("-"))
    if not name or not sign or not dash or not _is_number(low) or not _is_number(high):
        raise ValueError(
            f"must look like WHERE=LOW-HIGH, as in west=40-60 or west/a=50-66, not {text[:80]!r}"
        )
    pair = int(low), int(high)
    if not 1 <= pair[0] <= pair[1] <= PERCENT_MAX:
        raise ValueError(
            f"gives {name} the marks {low}-{high}: the low one must be at least 1, and the high "
            f"one not below it, nor above {PERCENT_MAX}"
        )
    return _parse_where(name), pair


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(PERCENT_MAX))


def _parse_where(name: str) -> Where:
    where = tuple(part.strip() for part in name.split(SEPARATOR))
    if len(where) > _ZONE_DEPTH or not where[-1]:
        raise ValueError(f"must name a region, or a zone as region/zone, not {name[:80]!r}")
    if where[0] == ALL and where[-1] != ALL:
        raise ValueError(f"must say the region of zone {where[-1][:80]!r}, or */* for all zones")
    for part in where:
        reason = None if part == ALL else check_label(part)
        if reason is not None:
            raise ValueError(f"names a region or zone that {reason}")
    return where


def check_outage_marks(value: Value) -> str | None:
    """What is wrong with the table: a malformed row, or two rows for one place; or None."""
    assert isinstance(value, tuple)
    try:
        places = [parse_outage_marks(part)[0] for part in value]
    except ValueError as error:
        return str(error)
    twice = next((one for one in places if places.count(one) > 1), None)
    return None if twice is None else f"gives the marks of {SEPARATOR.join(twice)} twice"


class OutageMarks:
    """The table. Its texts must have passed `check_outage_marks`."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._pairs = dict(parse_outage_marks(text) for text in texts)

    def of(self, domain: Where) -> Pair | None:
        """The marks of the narrowest row that matches a region or zone; None if no row does."""
        wider = (domain[0], ALL) if len(domain) == _ZONE_DEPTH else domain
        for where in (domain, wider, (ALL,) * len(domain)):
            if where in self._pairs:
                return self._pairs[where]
        return None
