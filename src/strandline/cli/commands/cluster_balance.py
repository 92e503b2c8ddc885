"""`strandline cluster balance`: which replicas move automatically, which wait, and why.

Source: docs/reference/cli.md; docs/decisions/0010-the-balancer.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show
from strandline.cli.text.copy_rates import describe_rates, rate_lines
from strandline.placement.explain.amounts import format_bytes

if TYPE_CHECKING:
    from strandline.client.operations.leadership import LeaderWaiting
    from strandline.protocol.messages.describe_balance import (
        BalanceMove,
        BalanceWait,
        DescribeBalanceResponse,
    )


_PAUSED = "balancer.enable is false"
"""The balancer's text while it is paused; printed once."""
_LOST_AFTER = "broker.lost.after.ms"
"""Time without a controller does not count; `cluster status` says since when a broker is silent."""


def balance(
    pause: Annotated[bool, typer.Option("--pause", help="Start no more moves.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume moves.")] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show which replicas move automatically, which wait, and why."""
    from strandline.base.errors import OperatorError
    from strandline.cli.text.piles import notes_on_piles
    from strandline.client.operations.balance import ENABLE, describe_balance_soon
    from strandline.client.operations.configs import alter_cluster_configs
    from strandline.client.operations.leadership import describe_leadership
    from strandline.model.ids import BrokerId

    if pause and resume:
        raise OperatorError("--pause and --resume exclude each other: give one")
    with open_client(bootstrap, timeout) as client:
        if pause or resume:
            alter_cluster_configs(client, {ENABLE: "true" if resume else "false"})
        found = describe_balance_soon(client)
        up = [BrokerId(one.broker_id) for one in found.brokers if not one.down_ms]
        leaders = describe_leadership(client, up)
        piles = notes_on_piles(client)
    is_enabled = resume or (found.is_enabled and not pause)
    show(
        {**_describe(found, leaders, is_enabled=is_enabled), "piles": [*piles]},
        as_json=as_json,
        people=lambda: _print(found, leaders, piles, is_enabled=is_enabled),
    )


def _describe(
    found: "DescribeBalanceResponse", leaders: "list[LeaderWaiting]", *, is_enabled: bool
) -> dict[str, Json]:
    return {
        "enabled": is_enabled,
        "moves_max": found.moves_max,
        "lost_after_ms": found.lost_after_ms,
        "has_looked": found.has_looked,
        "brokers": [
            {
                "id": one.broker_id,
                "condition": one.condition,
                "down_ms": one.down_ms,
                "disk_used_percent": None if one.disk_used_percent < 0 else one.disk_used_percent,
                "disk_full": one.is_disk_full,
            }
            for one in found.brokers
        ],
        "moves": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "replicas": list(one.replicas),
                "target": list(one.target),
                "reason": one.code,
                "text": one.text,
                "bytes": None if one.log_bytes < 0 else one.log_bytes,
            }
            for one in found.moves
        ],
        "waits": [
            {
                "reason": one.code,
                "text": one.text,
                "partitions": one.partition_count,
                "examples": list(one.examples),
            }
            for one in found.waits
        ],
        "leaders": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "leader": one.leader,
                "preferred": one.preferred,
                "reason": one.code,
                "text": one.text,
            }
            for one in leaders
        ],
        "begun": {one.code: one.count for one in found.begun},
        "rates": describe_rates(found.rates),
    }


def _numbers(found: "DescribeBalanceResponse") -> list[str]:
    """Reasons of moves, with equal ones grouped."""
    alike: dict[tuple[str, str], list[BalanceMove]] = {}
    for one in found.moves:
        if one.text:
            alike.setdefault((one.code, one.text), []).append(one)
    lines = []
    for (code, text), moves in alike.items():
        noun = "partition moves" if len(moves) == 1 else "partitions move"
        amount = format_bytes(sum(max(0, one.log_bytes) for one in moves))
        lines.append(f"{code}: {text}: {len(moves)} {noun}, {amount}")
    return lines


def _print(
    found: "DescribeBalanceResponse",
    leaders: "list[LeaderWaiting]",
    piles: list[str],
    *,
    is_enabled: bool,
) -> None:
    if not is_enabled:
        halted = [one for one in found.waits if _is_just_paused(one)]
        who = "".join(map(_who, halted))
        print_line(f"paused: no move starts ({_PAUSED}){who}")
    for broker in found.brokers:
        if broker.condition != "up":
            # What counts before it is replaced. `cluster status` tells since when it is silent.
            seconds = broker.down_ms // 1_000
            counts = f"; {seconds} s of silence count towards {_LOST_AFTER}" if seconds else ""
            print_line(f"broker {broker.broker_id}: {broker.condition}{counts}")
        if broker.is_disk_full:
            print_line(
                f"broker {broker.broker_id}: its disk is {broker.disk_used_percent} % full; it "
                "gets no more replicas"
            )
    for line in rate_lines(found.rates):
        print_line(line)
    for line in _numbers(found):
        print_line(line)
    if found.moves:
        print_table(
            Table(
                heads=("PARTITION", "REPLICAS", "TARGET", "BYTES", "REASON"),
                rows=[
                    (
                        f"{one.topic}-{one.partition}",
                        ids(one.replicas),
                        ids(one.target),
                        "-" if one.log_bytes < 0 else format_bytes(one.log_bytes),
                        one.code or "-",
                    )
                    for one in found.moves
                ],
            )
        )
    for wait in found.waits:
        if is_enabled or not _is_just_paused(wait):
            text = wait.text if is_enabled else wait.text.removesuffix(f"; {_PAUSED}")
            print_line(f"{wait.code}: {text}{_who(wait)}")
    alike: dict[tuple[str, int], list[LeaderWaiting]] = {}
    for one in leaders:
        alike.setdefault((one.code, one.preferred), []).append(one)
    for (code, _), waiting in alike.items():
        noun = "partition is" if len(waiting) == 1 else "partitions are"
        print_line(
            f"leader {code}: {waiting[0].text}; {len(waiting)} {noun} led elsewhere "
            f"({waiting[0].topic}-{waiting[0].partition}{', ...' if len(waiting) > 1 else ''})"
        )
    for line in piles:
        print_line(line)
    if not found.has_looked:
        print_line("the controller has not checked yet")
    elif not found.moves and not found.waits:
        is_even = not leaders and not piles
        print_line("every replica is where it should be" if is_even else "no replica has to move")


def _is_just_paused(wait: "BalanceWait") -> bool:
    """Whether its only reason is that the balancer is paused."""
    return wait.code == "paused" and wait.text == _PAUSED


def _who(wait: "BalanceWait") -> str:
    """Which partitions wait, after what they wait for."""
    if not wait.partition_count:
        return ""
    noun = "partition waits" if wait.partition_count == 1 else "partitions wait"
    more = ", ..." if wait.partition_count > len(wait.examples) else ""
    return f"; {wait.partition_count} {noun} ({', '.join(wait.examples)}{more})"
