"""What `topic describe` says of a topic that copies another cluster's topic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import Table, print_line, print_table

if TYPE_CHECKING:
    from strandline.protocol.messages.describe_read_replicas import CopiedPartition


def copies_json(topic: str, copies: "Sequence[CopiedPartition]") -> list[Json]:
    """As JSON; None for what is not known."""
    return [
        {
            "partition": one.partition,
            "source": one.source,
            "state": one.state,
            "failure": one.failure or None,
            "export": one.export or None,
            "start": _known(one.log_start_offset),
            "end": _known(one.high_watermark),
            "source_end": _known(one.source_high_watermark),
            "staleness_ms": _known(one.staleness_ms),
        }
        for one in copies
        if one.topic == topic
    ]


def tell_copies(topic: str, copies: "Sequence[CopiedPartition]") -> None:
    """For people: where the source is, and how far each partition is."""
    own = [one for one in copies if one.topic == topic]
    if not own:
        return
    print_line(f"read replica of {own[0].source}")
    print_table(
        Table(
            heads=("PARTITION", "STATE", "END", "END AT SOURCE", "STALENESS"),
            right=frozenset({"PARTITION", "END", "END AT SOURCE", "STALENESS"}),
            rows=[
                (
                    one.partition,
                    one.state,
                    _shown(one.high_watermark),
                    _shown(one.source_high_watermark),
                    f"{one.staleness_ms / 1000:.0f} s" if one.staleness_ms >= 0 else "?",
                )
                for one in own
            ],
        )
    )
    for failure in dict.fromkeys(one.failure for one in own if one.failure):
        print_line(f"the bucket cannot be read: {failure}")


def _known(value: int) -> int | None:
    return None if value < 0 else value


def _shown(value: int) -> str:
    return "?" if value < 0 else str(value)
