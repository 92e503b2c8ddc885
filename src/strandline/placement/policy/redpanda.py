"""Reads Redpanda's leader preferences: `none`, `racks:a,b`, `ordered_racks:a,b`.

How:    `racks` is one preference: leaders are spread evenly over these racks. `ordered_racks` is
        one for each, in order; a rack given twice counts where it comes first. Spaces are
        ignored; an empty rack is refused. A rack is Kafka's `broker.rack`; brokers without one
        meet no preference and come last.
Source: Redpanda's documentation of `redpanda.leaders.preference` (reference to placement)."""

from strandline.base.errors import OperatorError
from strandline.config.addresses import check_label
from strandline.placement.policy.document import KAFKA_RACK_LABEL, Leaders, Selector, Where

CONFIG = "redpanda.leaders.preference"


def import_leader_preference(text: str, *, source: str = CONFIG) -> Leaders:
    """Where leaders should be; raises OperatorError with what to write."""
    kind, colon, listed = "".join(text.split()).partition(":")
    if kind == "none" and not colon:
        return Leaders()
    if kind not in ("racks", "ordered_racks") or not colon:
        raise OperatorError(
            f"{source}: cannot read {text[:80]!r}: write none, racks:a,b or ordered_racks:a,b"
        )
    racks = tuple(listed.split(","))
    for rack in racks:
        reason = check_label(rack) if rack else "must not be empty"
        if reason is not None:
            raise OperatorError(f"{source}: a rack {reason}: write for example {kind}:a,b")
    if kind == "racks":
        return Leaders(prefer=(_where(racks),))
    return Leaders(prefer=tuple(_where((rack,)) for rack in racks))


def _where(racks: tuple[str, ...]) -> Where:
    return (Selector(KAFKA_RACK_LABEL, "in", racks),)
