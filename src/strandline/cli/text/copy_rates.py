"""The rate limits of copies to new replicas, as text.

Source: docs/decisions/0010-the-balancer.md ("Budget")."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.placement.explain.amounts import format_bytes

if TYPE_CHECKING:
    from strandline.protocol.messages.describe_balance import CopyRate


def describe_rates(rates: "Iterable[CopyRate]") -> Json:
    """As JSON: {budget: its rate, and the share of each broker}."""
    return {
        one.name: {
            "bytes_per_s": one.bytes_per_s,
            "shares": {str(share.broker_id): share.bytes_per_s for share in one.shares},
        }
        for one in rates
    }


def rate_lines(rates: "Iterable[CopyRate]") -> list[str]:
    """For people: a line for each budget."""
    from strandline.controller.placing.copy_shares import ALL, CROSS_REGION

    words = {ALL: "", CROSS_REGION: " between regions"}
    lines = []
    for one in rates:
        which = words.get(one.name, f" {one.name}")
        line = f"copies{which} may use {_rate(one.bytes_per_s)} in total"
        if not one.bytes_per_s:
            line = f"copies{which} are halted"
        shares = [f"broker {share.broker_id} {_rate(share.bytes_per_s)}" for share in one.shares]
        lines.append(f"{line}: {', '.join(shares)}" if shares and one.bytes_per_s else line)
    return lines


def _rate(bytes_per_s: int) -> str:
    return f"{format_bytes(bytes_per_s)}/s"
