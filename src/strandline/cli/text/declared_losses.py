"""Turns the declared losses of topics into text and JSON.

Source: decision 0027."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import ids, print_line

if TYPE_CHECKING:
    from strandline.protocol.messages.describe_losses import DeclaredLoss


def tell_declared(topic: str, losses: "Sequence[DeclaredLoss]") -> None:
    """Print a line for each declaration, the oldest first."""
    for one in losses:
        if one.topic == topic:
            print_line(declared_text(one))


def declared_text(one: "DeclaredLoss") -> str:
    """One declaration: when, by whom, and the offsets at risk."""
    from datetime import UTC, datetime

    day = datetime.fromtimestamp(one.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if one.buckets:
        return (
            f"partition {one.partition}: all logs given up on {day} by {one.by or 'unknown'}; it "
            f"began anew with what {', '.join(one.buckets)} had; offsets from "
            f"{one.log_end_offset} were at risk"
        )
    lost = f"brokers {ids(one.broker_ids)}"
    if not one.broker_ids:
        lost = "only brokers that had lost their logs"
    kept = f"; those below {one.log_end_offset} are as on broker {one.leader_id}"
    return (
        f"partition {one.partition}: declared lost on {day} by {one.by or 'unknown'}: {lost}; "
        f"offsets from {one.committed_offset} were at risk"
        f"{kept if one.committed_offset < one.log_end_offset else ''}"
    )


def declared_json(topic: str, losses: "Sequence[DeclaredLoss]") -> list[Json]:
    """The declared losses of a topic, as JSON."""
    return [
        {
            "partition": one.partition,
            "grant": one.grant,
            "lost": list(one.broker_ids),
            "survivors": list(one.survivors),
            "leader": one.leader_id,
            "at_risk_from": one.committed_offset,
            "on_nobody_from": one.log_end_offset,
            "by": one.by,
            "at_ms": one.at_ms,
            "buckets": list(one.buckets),
        }
        for one in losses
        if one.topic == topic
    ]
