"""`strandline cluster status`: the first command in an outage, with or without a controller.

Source: docs/reference/cli.md; docs/operating/outages.md."""

from typing import TYPE_CHECKING

import typer

from strandline.base.json_value import Json
from strandline.cli.options import AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import print_line, show

if TYPE_CHECKING:
    from strandline.cli.text.status_page import StatusPage
    from strandline.client.operations.cluster_status import ClusterStatus
    from strandline.protocol.messages.describe_status import StatusPartitions

PATIENCE_S = 2.0


def status(
    bootstrap: Bootstrap = "",
    timeout: Timeout = PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Show what is down and since when, what is stopped, what is at risk, what happens by itself
    and when, and what to type. Asks all brokers at the same time and needs no controller. Exit
    code 10: something is wrong, or not known."""
    from strandline.cli.exit_codes import UNHEALTHY
    from strandline.cli.text.status_page import page_of
    from strandline.client.operations.cluster_status import ask_status

    with open_client(bootstrap, timeout) as client:
        found = ask_status(client)
        wall_ms = client.transport.wall_ms()
    page = page_of(found, wall_ms)
    show(_json(found, page, wall_ms), as_json=as_json, people=lambda: _print(page))
    if not page.is_healthy:
        raise typer.Exit(UNHEALTHY)


def _print(page: "StatusPage") -> None:
    from strandline.cli.text.status_page import HEALTHY

    print_line(page.head)
    for title, lines in page.sections:
        if lines:
            print_line("")
            print_line(title.upper())
        for line in lines:
            print_line(f"  {line}")
    if page.is_healthy:
        print_line(HEALTHY)


def _json(found: "ClusterStatus", page: "StatusPage", wall_ms: int) -> Json:
    from strandline.client.operations.lost_logs import split_leaderless

    best = found.best
    controller = next((id for id, one in found.answers.items() if one.is_controller), None)
    return {
        "cluster_id": best.cluster_id,
        "healthy": page.is_healthy,
        "controller": controller,
        "controller_settled": found.is_settled,
        "brokers": [
            {
                "id": one.broker_id,
                "region": one.region or None,
                "zone": one.zone or None,
                "answers": found.is_answering(one.broker_id),
                "heard_by": [*found.heard_by(one.broker_id)],
                "down": found.is_down(one.broker_id),
                "silent_since_ms": found.since_ms(one.broker_id, wall_ms)
                if found.is_down(one.broker_id)
                else None,
                "fate": one.fate or None,
                "due_ms": one.due_ms if one.due_ms >= 0 else None,
            }
            for one in found.brokers
        ],
        "without_leader": [_partitions(one) for one in best.leaderless],
        "logs_lost": [
            {
                "topic": one.topic,
                "partitions": [*one.partitions],
                "brokers": [*one.brokers],
                "all": one.is_all,
                "has_buckets": one.has_buckets,
            }
            for one in split_leaderless(found)[1]
        ],
        "rejecting_acks_all": [
            _partitions(one) for answer in found.answers.values() for one in answer.refusing
        ],
        "one_loss_from_stopping": [_partitions(one) for one in best.thin],
        "fewer_voters": best.fewer_voters_count,
        "observers_vote": best.observers_vote_count,
        "text": {title: [*lines] for title, lines in page.sections},
    }


def _partitions(one: "StatusPartitions") -> Json:
    return {
        "topic": one.topic,
        "partitions": [*one.partitions],
        "course": one.course,
        "voters": one.voters,
        "left": one.left,
        "back": one.back,
        "missing": [*one.missing],
    }
