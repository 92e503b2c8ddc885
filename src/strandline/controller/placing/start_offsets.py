"""Where the logs of a new topic begin, if it takes the place of one of a lost cluster.

Why:    the records of a restored partition keep their offsets, and so do the groups that read it.
How:    a request to create a topic may have `restore.start.offsets`, one offset for each partition.
        It is no configuration: it is not stored, and cannot be changed.
Source: decision 0063."""

from collections.abc import Iterable

from strandline.controller.decision import Facts, refuse
from strandline.protocol.errors import Error

STARTS = "restore.start.offsets"
OFFSET_MAX = (1 << 62) - 1
Configs = tuple[tuple[str, str | None], ...]


def start_offsets(
    facts: Facts, configs: Iterable[tuple[str, str | None]]
) -> tuple[tuple[int, ...], Configs]:
    """(the offsets, none if they are not given; the other configuration). Raises ApiError."""
    others = tuple(one for one in configs if one[0] != STARTS)
    texts = [value for name, value in configs if name == STARTS]
    if not texts:
        return (), others
    fields = (texts[-1] or "").split(",")
    if not all(one.isascii() and one.isdecimal() and int(one) <= OFFSET_MAX for one in fields):
        raise refuse(Error.INVALID_CONFIG, f"{STARTS} must be one offset for each partition")
    if facts.without_tiering:
        brokers = ", ".join(map(str, sorted(facts.without_tiering)))
        raise refuse(
            Error.INVALID_CONFIG,
            f"{STARTS} needs every broker's release to know it: brokers {brokers} are down, or are "
            "of an earlier release",
        )
    return tuple(map(int, fields)), others
