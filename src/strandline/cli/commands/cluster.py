"""`strandline cluster`: where the cluster's brokers are, and which losses it survives.

Source: docs/reference/cli.md; docs/operating/placement.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import (
    cluster_alter,
    cluster_balance,
    cluster_status,
    cluster_upgrade,
)
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
    from strandline.client.operations.log_dirs import DiskView
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.exposure import Exposure
    from strandline.placement.explain.topics import TopicExplanation
    from strandline.placement.topology.universe import Candidate

app = typer.Typer(
    help="Show the state of a cluster, explain it, see what it does by itself, change its keys.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class _ClusterReport:
    cluster: "LiveCluster"
    disks: "Mapping[BrokerId, DiskView | None]"
    topics: "Sequence[tuple[LiveTopic, TopicExplanation]]"
    exposures: "Sequence[Exposure]"


app.command("status")(cluster_status.status)
app.command("balance")(cluster_balance.balance)
app.command("alter")(cluster_alter.alter)
app.add_typer(cluster_upgrade.app, name="upgrade")


@app.command()
def explain(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show where brokers are and how far apart, which topics satisfy their policies, which
    losses they survive as placed and now, and what one more loss would stop."""
    from strandline.cli.text.live_cluster import look
    from strandline.cli.text.losses import rules_of
    from strandline.client.operations.log_dirs import describe_disk
    from strandline.placement.explain.exposure import exposures
    from strandline.placement.explain.topics import explain_topic, placement_of
    from strandline.placement.topology.universe import Universe

    with open_client(bootstrap, timeout) as client:
        cluster = look(client, None)
        disks = {
            one.id: describe_disk(client, one.id) if one.is_up else None
            for one in cluster.candidates
        }
        rules = rules_of(client, cluster)
    topics = [
        (
            one,
            explain_topic(one.request, cluster.candidates, one.partitions, rules=rules[one.name]),
        )
        for one in cluster.topics
    ]
    universe = Universe(cluster.candidates)
    down = [one.id for one in cluster.candidates if not one.is_up]
    placed = [
        (
            placement_of(universe, alike.roles, topic.request, alike.acting).at_present(
                down=down, behind=alike.behind
            ),
            rules[topic.name],
            len(alike.partitions),
        )
        for topic, told in topics
        for alike in told.alike
    ]
    found = _ClusterReport(cluster, disks, topics, exposures(universe, placed))
    show(_json(found), as_json=as_json, people=lambda: _tell(found))


def _json(told: _ClusterReport) -> Json:
    from strandline.cli.text.explaining import builtins

    return {
        "cluster_id": told.cluster.cluster_id,
        "controller": told.cluster.controller,
        "brokers": [
            {
                "id": one.id,
                "labels": _labels(one),
                "state": one.state.value,
                "up": one.is_up,
                "replicas": one.replicas,
                "leaders": told.cluster.led.get(one.id, 0),
                "disk": None
                if (disk := told.disks[one.id]) is None
                else {
                    "logs_bytes": disk.logs_bytes,
                    "total_bytes": disk.total_bytes,
                    "usable_bytes": disk.usable_bytes,
                    "used_percent": told.cluster.disk_used_percent.get(one.id),
                },
            }
            for one in told.cluster.candidates
        ],
        "round_trips": [
            {"between": [a, b], "ms": ms} for a, b, ms in told.cluster.round_trips.regions
        ],
        "measured": [
            {"from": a, "to": b, "ms": ms} for a, b, ms in told.cluster.round_trips.brokers
        ],
        "topics": [
            {"topic": topic.name, "policy_key": topic.policy_key, "explanation": builtins(one)}
            for topic, one in told.topics
        ],
        "losses": [builtins(one) for one in told.exposures],
    }


def _labels(broker: "Candidate") -> dict[str, Json]:
    return {**broker.labels.as_dict()}


def _tell(told: _ClusterReport) -> None:
    cluster = told.cluster
    count = len(cluster.candidates)
    down = [one.id for one in cluster.candidates if not one.is_up]
    print_line(
        f"cluster {cluster.cluster_id}: {count} broker{'s' * (count > 1)}, "
        f"{f'down: {ids(down)}' if down else 'none down'}; "
        f"controller {'none' if cluster.controller < 0 else cluster.controller}"
    )
    _tell_brokers(told)
    _tell_round_trips(cluster)
    _tell_topics(told)
    _tell_losses(told)


def _tell_brokers(told: _ClusterReport) -> None:
    from strandline.cli.text.explaining import state_of, where

    rows = []
    for one in told.cluster.candidates:
        labels = _labels(one)
        others = [
            f"{name}={value}"
            for name, value in labels.items()
            if name not in ("region", "zone", "rack", "host")
        ]
        percent = told.cluster.disk_used_percent.get(one.id) if one.is_up else None
        used = "?" if percent is None else f"{percent} %"
        led = told.cluster.led.get(one.id, 0)
        labelled = " ".join(others) or "-"
        rows.append((one.id, where(one), labelled, state_of(one), one.replicas, led, used))
    heads = ("BROKER", "WHERE", "OTHER LABELS", "STATE", "REPLICAS", "LEADERS", "DISK USED")
    right = frozenset(("BROKER", "REPLICAS", "LEADERS", "DISK USED"))
    print_table(Table(heads=heads, rows=rows, right=right))


def _tell_round_trips(cluster: "LiveCluster") -> None:
    from strandline.cli.text.explaining import milliseconds

    print_line("")
    rows = [(a, b, milliseconds(ms)) for a, b, ms in cluster.round_trips.regions]
    if rows:
        title = "round trips by the brokers' heartbeats:"
        print_table(Table(title=title, heads=("REGION", "REGION", "TAKES"), rows=rows))
    elif cluster.round_trips.brokers:
        print_line("round trips between regions: unknown, brokers have no region label")
    else:
        print_line("round trips between regions: not measured")


def _tell_topics(told: _ClusterReport) -> None:
    from strandline.cli.commands.topic_explain import replica_counts
    from strandline.cli.text.explaining import NOTHING, losses_survived, ranges
    from strandline.cli.text.live_cluster import key_of_the_cluster

    rows = []
    for topic, one in told.topics:
        policy = "none"
        if topic.policy_key:
            policy = "the cluster's" if key_of_the_cluster(topic.policy_key) else "its own"
        wrong = [index for alike in one.alike if alike.faults for index in alike.partitions]
        stopped = [index for alike in one.alike if alike.has_stopped for index in alike.partitions]
        right = "-" if not topic.policy_key else "yes"
        survives = losses_survived(one.writes, one.writes_but_not)
        now = losses_survived(one.writes_now, one.writes_now_but_not)
        now = f"stopped: {ranges(stopped)}" if stopped else now
        rows.append(
            (
                topic.name,
                len(topic.partitions),
                replica_counts(one),
                policy,
                f"not {ranges(wrong)}" if wrong else right,
                survives,
                "the same" if now == survives and now != NOTHING else now,
            )
        )
    heads = ("TOPIC", "PARTITIONS", "REPLICAS", "POLICY", "HOLDS", "SURVIVES", "NOW")
    print_line("")
    if rows:
        print_table(
            Table(
                title="writes of topics go on after the loss of:",
                heads=heads,
                rows=rows,
                right=frozenset(("PARTITIONS", "REPLICAS")),
            )
        )
    else:
        print_line("no topics")


def _tell_losses(told: _ClusterReport) -> None:
    if not told.topics:
        return
    print_line("")
    if not told.exposures:
        stopped = any(alike.has_stopped for _, one in told.topics for alike in one.alike)
        which = "of the partitions that accept writes, no" if stopped else "no"
        print_line(f"{which} single further loss stops writes or loses acknowledged ones")
        return
    rows = [
        (f"{one.level} {one.domain}", ids(one.brokers), one.stops, one.loses)
        for one in told.exposures
    ]
    print_table(
        Table(
            title="partitions that one more loss would affect:",
            heads=("LOSS OF", "BROKERS", "STOPS WRITES OF", "MAY LOSE WRITES OF"),
            rows=rows,
            right=frozenset(("STOPS WRITES OF", "MAY LOSE WRITES OF")),
        )
    )
