"""`strandline broker decommission --dry-run` and `maintain --dry-run`: what they would do.

Source: docs/reference/cli.md; docs/operating/brokers.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import Table, counted, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.leaving import Leaving
    from strandline.client.cluster import Client
    from strandline.model.ids import BrokerId

NOTHING_CHANGED = "nothing changed"


def show_decommission(
    client: "Client", brokers: "Sequence[BrokerId]", *, host: str, as_json: bool
) -> None:
    """Print what would move, and what topics survive afterwards; changes nothing. `host`: the
    machine, if these are all of its brokers."""
    from strandline.cli.text.leaving import look_at_leaving
    from strandline.client.operations.broker_removal import votes_of

    found = look_at_leaving(client, brokers)
    votes = votes_of(client, found.brokers)

    def people() -> None:
        _tell(found)
        for line in votes.values():
            print_line(line)
        print_line(NOTHING_CHANGED)

    named: dict[str, Json] = {"broker": brokers[0]}
    if host:
        named = {"host": host, "brokers": list(brokers)}
    show({**named, **_describe(found), "votes": bool(votes)}, as_json=as_json, people=people)


def show_maintenance(
    client: "Client", brokers: "Sequence[BrokerId]", until_ms: int, *, as_json: bool
) -> None:
    """Print what would be led by others, and what a stop of these brokers does; changes nothing.
    Raises ApiError if the controller would refuse it."""
    from strandline.cli.commands.broker_ok_to_stop import describe_stop, stop_lines
    from strandline.cli.text.stops import look_at_stops
    from strandline.client.operations.configs import alter_broker_configs
    from strandline.config.broker_life import MAINTENANCE

    alter_broker_configs(client, brokers, {MAINTENANCE: str(until_ms)}, validate_only=True)
    topics = client.metadata(None).topics.values()
    led = sum(one.leader in brokers for topic in topics for one in topic.partitions)
    stop = look_at_stops(client).stop(brokers)

    def people() -> None:
        noun = "broker" if len(brokers) == 1 else "brokers"
        print_line(f"{noun} {ids(brokers)} would enter maintenance; replicas stay")
        print_line(f"  others would lead {counted(led, 'partition')}")
        for line in stop_lines(stop, ()):
            print_line(f"  {line}")
        print_line(NOTHING_CHANGED)

    told: dict[str, Json] = {"brokers": list(brokers), "changed": False, "led": led}
    show({**told, "stop": describe_stop(stop, ())}, as_json=as_json, people=people)


def _describe(found: "Leaving") -> dict[str, Json]:
    from strandline.cli.text.explaining import builtins

    return {
        "changed": False,
        "replicas": found.held,
        "left": found.left,
        "paused": found.is_paused,
        "cost": builtins(found.cost),
        "topics": [
            {
                "topic": one.name,
                "partitions": one.moves,
                "writes_before": builtins(one.before.writes),
                "writes_after": builtins(one.after.writes),
                "data_before": builtins(one.before.data),
                "data_after": builtins(one.after.data),
            }
            for one in found.topics
        ],
        "waits": [
            {"reason": code, "text": text, "partitions": one.count}
            for (code, text), one in found.preview.waits.found.items()
        ],
    }


def _tell(found: "Leaving") -> None:
    from strandline.cli.text.explaining import losses_survived
    from strandline.placement.explain.amounts import format_bytes

    noun = "broker" if len(found.brokers) == 1 else "brokers"
    print_line(
        f"{noun} {ids(found.brokers)} would be emptied: "
        f"{counted(found.held, 'replica')} would move, "
        f"{counted(found.cost.copies, 'copy')}, {format_bytes(found.cost.bytes)}"
    )
    if found.left:
        print_line(f"  {counted(found.left, 'replica')} would stay for now")
    for (code, text), one in found.preview.waits.found.items():
        print_line(f"  {code}: {text}; {counted(one.count, 'partition')}")
    if found.is_paused:
        print_line("  paused: nothing starts until you resume the balancer")
    rows = []
    for topic in found.topics:
        before = losses_survived(topic.before.writes, topic.before.writes_but_not)
        after = losses_survived(topic.after.writes, topic.after.writes_but_not)
        then = "the same" if after == before else after
        rows.append((topic.name, topic.moves, before, then))
    if rows:
        print_table(
            Table(
                title="writes of topics go on after the loss of:",
                heads=("TOPIC", "PARTITIONS MOVE", "NOW", "AFTERWARDS"),
                rows=rows,
                right=frozenset(("PARTITIONS MOVE",)),
            )
        )
