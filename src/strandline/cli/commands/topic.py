"""`strandline topic`: creates, lists, describes, alters and deletes topics, and their oldest
records. `topic_explain` explains them.

Source: docs/reference/cli.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import topic_dry_run, topic_explain
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    DryRun,
    PolicyFile,
    Timeout,
    Unset,
    open_client,
    parse_changes,
    parse_pairs,
)
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.losses import LossForecast
    from strandline.client.cluster import Client
    from strandline.client.operations.broker_configs import ConfigView
    from strandline.client.operations.observers import AllObserved
    from strandline.client.views import TopicView
    from strandline.model.ids import BrokerId


app = typer.Typer(
    help="Create, list, describe, explain, alter and delete topics.", no_args_is_help=True
)

Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics.")]
Config = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="KEY=VALUE", help="A topic key; may be repeated."),
]


@app.command()
def create(
    names: Names,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Partitions of each topic.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", "-r", min=1, help="Replicas of each partition.")
    ] = None,
    config: Config = None,
    policy: PolicyFile = None,
    read_replica_of: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Copy a topic of another cluster, read-only, out of its bucket: a bucket's URL, "
            "then #CLUSTER-ID/TOPIC or #TOPIC if it has another name there.",
        ),
    ] = "",
    dry_run: DryRun = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Create topics; returns when every partition has a leader. Shows which losses each topic
    survives by itself. With --dry-run: the same for an example placement."""
    from strandline.cli.text.losses import look_at_losses
    from strandline.cli.text.policy_notes import notes_on_changes, notes_on_min_insync
    from strandline.client.admin import USE_DEFAULT, NewTopic, create_topic
    from strandline.client.operations.observers import describe_observers

    configs = parse_pairs(config, option="--config")
    if policy is not None:
        configs += (("placement.policy", _read_policy(policy)),)
    if read_replica_of:
        configs += (("read.replica.of", read_replica_of),)
    wanted = [
        NewTopic(
            name=name,
            partitions=partitions or USE_DEFAULT,
            replication_factor=replicas or USE_DEFAULT,
            configs=configs,
        )
        for name in names
    ]
    with open_client(bootstrap, timeout) as client:
        if dry_run:
            topic_dry_run.show_create(client, wanted, as_json=as_json)
            return
        topics = [create_topic(client, one) for one in wanted]
        observed = describe_observers(client, names)
        notes = notes_on_changes(client, dict(configs)) + notes_on_min_insync(client, names)
        losses = look_at_losses(client, names)
        notes += dict.fromkeys(note for one in losses.values() for note in one.notes)
        notes += [
            f"topic {one.name} is created; your user may not see it: that takes `describe` on it"
            for one in topics
            if one.error_code
        ]
    seen = [one for one in topics if not one.error_code]
    _show_list(seen, observed, as_json=as_json, notes=notes, losses=losses)


@app.command("list")
def list_topics(
    internal: Annotated[
        bool, typer.Option("--internal", help="Also show internal topics.")
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """List the topics of the cluster."""
    from strandline.client.operations.observers import describe_observers

    with open_client(bootstrap, timeout) as client:
        found = client.metadata(None).topics
        observed = describe_observers(client)
    topics = [found[name] for name in sorted(found) if internal or not found[name].is_internal]
    _show_list(topics, observed, as_json=as_json)


@app.command()
def describe(
    names: Names,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show partitions, leaders, replicas, offsets and configuration of topics."""
    from strandline.cli.text.declared_losses import declared_json, tell_declared
    from strandline.cli.text.read_replicas import copies_json, tell_copies
    from strandline.client.operations.configs import describe_topic_configs
    from strandline.client.operations.losses import describe_losses
    from strandline.client.operations.observers import describe_observers
    from strandline.client.operations.read_replicas import describe_read_replicas
    from strandline.config.topic_read_replica import READ_REPLICA_OF

    described = []
    with open_client(bootstrap, timeout) as client:
        regions = {int(one.id): one.rack for one in client.metadata().brokers.values()}
        for name in names:
            topic = client.topic(name)
            configs = describe_topic_configs(client, name)
            described.append((topic, _offsets(client, topic), configs))
        observed = describe_observers(client, names)
        declared = describe_losses(client, names)
        copied = [
            topic.name
            for topic, _, configs in described
            if any(one.name == READ_REPLICA_OF and one.value for one in configs)
        ]
        copies = describe_read_replicas(client, copied) if copied else []

    def people() -> None:
        for topic, offsets, configs in described:
            _describe_for_people(topic, offsets, configs, regions=regions, observed=observed)
            tell_copies(topic.name, copies)
            tell_declared(topic.name, declared)

    show(
        {
            "topics": [
                _describe(*one, observed)
                | {
                    "declared_lost": declared_json(one[0].name, declared),
                    "read_replicas": copies_json(one[0].name, copies),
                }
                for one in described
            ]
        },
        as_json=as_json,
        people=people,
    )


app.command("explain")(topic_explain.explain)


@app.command()
def alter(
    names: Names,
    config: Config = None,
    unset: Unset = None,
    policy: PolicyFile = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Change keys of topics. With another policy, replicas move automatically. With --dry-run:
    show what would be survived, or what another policy would move."""
    from strandline.base.errors import OperatorError
    from strandline.cli.text.policy_notes import notes_on_changes, notes_on_min_insync, tell_notes
    from strandline.client.operations.configs import alter_topic_configs
    from strandline.controller.placing.policies import MIN_INSYNC

    changes = parse_changes(config, unset)
    if policy is not None:
        changes["placement.policy"] = _read_policy(policy)
    if not changes:
        raise OperatorError("nothing to change: give --config, --unset or --policy")
    with open_client(bootstrap, timeout) as client:
        if dry_run:
            topic_dry_run.show_alter(client, names, changes, as_json=as_json)
            return
        for name in names:
            alter_topic_configs(client, name, changes)
        notes = notes_on_changes(client, changes)
        if MIN_INSYNC in changes:
            notes += notes_on_min_insync(client, names)

    def people() -> None:
        for name in names:
            print_line(f"topic {name} changed")
        tell_notes(notes)

    show({"altered": names, "notes": notes}, as_json=as_json, people=people)


@app.command()
def delete(
    names: Names,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Delete topics with all their records."""
    from strandline.client.admin import delete_topic

    with open_client(bootstrap, timeout) as client:
        for name in names:
            delete_topic(client, name)

    def people() -> None:
        for name in names:
            print_line(f"topic {name} deleted")

    show({"deleted": names}, as_json=as_json, people=people)


@app.command("delete-records")
def delete_records(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic.")],
    partition: Annotated[int, typer.Option("--partition", "-p", min=0, help="The partition.")],
    before: Annotated[
        int,
        typer.Option(
            "--before", min=-1, metavar="OFFSET", help="First offset to keep; -1 keeps none."
        ),
    ],
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Delete the records of a partition below an offset, permanently."""
    from strandline.client import admin

    with open_client(bootstrap, timeout) as client:
        start = admin.delete_records(client, name, partition, before)
    show(
        {"topic": name, "partition": partition, "start_offset": start},
        as_json=as_json,
        people=lambda: print_line(f"{name}-{partition} now starts at offset {start}"),
    )


def _read_policy(file: Path) -> str:
    from strandline.cli.server.broker_file import read_file
    from strandline.placement.policy.confluent import decode_either
    from strandline.placement.policy.text import encode_policy

    return encode_policy(decode_either(read_file(file), source=str(file)))


def _offsets(client: "Client", topic: "TopicView") -> dict[int, tuple[int | None, int | None]]:
    """{partition: (start, end)}; None for a partition that cannot be asked now."""
    from strandline.base.errors import StrandlineError
    from strandline.client.admin import EARLIEST, LATEST, list_offsets, offsets_told

    leaders = {one.index: one.leader for one in topic.partitions if one.leader >= 0}
    until = client.look_deadline()
    try:
        starts, ends = (
            list_offsets(client, topic.name, when, partitions=list(leaders), deadline_ms=until)
            for when in (EARLIEST, LATEST)
        )
    except StrandlineError:  # One that does not tell must not hide the others.
        starts, ends = offsets_told(client, topic.name, leaders, (EARLIEST, LATEST))
    return {one.index: (starts.get(one.index), ends.get(one.index)) for one in topic.partitions}


def _observers(observed: "AllObserved", topic: str, partition: int) -> "tuple[BrokerId, ...]":
    one = observed.get((topic, partition))
    return () if one is None else one.present


def _summary(topic: "TopicView", observed: "AllObserved") -> dict[str, Json]:
    """`replicas` counts observers too. An observer is in sync only while it stands in for a
    missing voter."""
    voters = {
        one.index: set(one.replicas).difference(_observers(observed, topic.name, one.index))
        for one in topic.partitions
    }
    return {
        "name": topic.name,
        "id": str(topic.id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": len(topic.partitions[0].replicas) if topic.partitions else 0,
        "observers": len(_observers(observed, topic.name, 0)),
        "leaderless": sum(1 for one in topic.partitions if one.leader < 0),
        "under_replicated": sum(
            1 for one in topic.partitions if not voters[one.index] <= set(one.in_sync)
        ),
    }


def _describe(
    topic: "TopicView",
    offsets: dict[int, tuple[int | None, int | None]],
    configs: "list[ConfigView]",
    observed: "AllObserved",
) -> dict[str, Json]:
    from strandline.config.effective import ConfigSource

    return {
        "name": topic.name,
        "id": str(topic.id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": one.index,
                "leader": one.leader,
                "epoch": one.epoch,
                "replicas": list(one.replicas),
                "observers": list(_observers(observed, topic.name, one.index)),
                "in_sync": list(one.in_sync),
                "offline": list(one.offline),
                "start_offset": offsets[one.index][0],
                "end_offset": offsets[one.index][1],
            }
            for one in topic.partitions
        ],
        "configs": {
            one.name: {"value": one.value, "set_on_topic": one.source == ConfigSource.TOPIC}
            for one in configs
        },
    }


def _show_list(
    topics: "list[TopicView]",
    observed: "AllObserved",
    *,
    as_json: bool,
    notes: "list[str] | None" = None,
    losses: "Mapping[str, LossForecast] | None" = None,
) -> None:
    """`notes` and `losses`: None where there can be none."""
    from strandline.cli.text.losses import losses_json, tell_losses
    from strandline.cli.text.policy_notes import tell_notes

    found = [_summary(one, observed) for one in topics]
    for one in found:
        name = str(one["name"])
        if losses is not None:
            one["losses"] = losses_json(losses[name]) if name in losses else None

    def people() -> None:
        _list(found)
        tell_notes(notes or ())
        for one in (losses or {}).values():
            print_line("")
            tell_losses(one)

    told: dict[str, Json] = {"topics": [*found]}
    show(told if notes is None else {**told, "notes": notes}, as_json=as_json, people=people)


def _list(found: "list[dict[str, Json]]") -> None:
    columns = ["partitions", "replicas", "observers", "leaderless", "under_replicated"]
    if not any(one["observers"] for one in found):
        columns.remove("observers")
    heads = ("TOPIC", *(one.upper().replace("_", "-") for one in columns))
    rows = [(str(one["name"]), *(str(one[column]) for column in columns)) for one in found]
    print_table(Table(heads=heads, rows=rows, right=frozenset(heads[1:])))


def _describe_for_people(
    topic: "TopicView",
    offsets: dict[int, tuple[int | None, int | None]],
    configs: "list[ConfigView]",
    *,
    regions: dict[int, str],
    observed: "AllObserved",
) -> None:
    from strandline.client.operations.broker_configs import VOTERS_SHRINK, is_on
    from strandline.config.effective import ConfigSource

    def place(broker: int) -> str:
        region = regions.get(broker, "")
        return f"{broker}@{region}" if region else str(broker)

    print_line(f"topic {topic.name}  id {topic.id}")
    changed = [f"{one.name}={one.value}" for one in configs if one.source == ConfigSource.TOPIC]
    print_line(f"configuration {' '.join(changed) or 'cluster defaults'}")
    observers = {one.index: _observers(observed, topic.name, one.index) for one in topic.partitions}
    has_observers = any(observers.values())
    watch = ("OBSERVERS",) if has_observers else ()
    print_table(
        Table(
            heads=("PARTITION", "LEADER", "EPOCH", "REPLICAS", *watch, "IN SYNC", "START", "END"),
            right=frozenset({"PARTITION", "EPOCH", "START", "END"}),
            rows=[
                (
                    one.index,
                    place(one.leader) if one.leader >= 0 else "none",
                    one.epoch,
                    " ".join(place(broker) for broker in one.replicas),
                    *((ids(observers[one.index]),) if has_observers else ()),
                    ids(one.in_sync),
                    *("?" if offset is None else offset for offset in offsets[one.index]),
                )
                for one in topic.partitions
            ],
        )
    )
    if is_on(VOTERS_SHRINK, configs):
        for one in topic.partitions:
            here = {*one.in_sync, *observers[one.index]}
            missed = [each for each in one.replicas if each not in here]
            if missed:
                is_one = len(missed) == 1
                text = f"broker {ids(missed)} is" if is_one else f"brokers {ids(missed)} are"
                text += " down or behind"
                if one.leader >= 0:  # Without a leader, no voter can leave.
                    until = (
                        "leaves the voters until it keeps"
                        if is_one
                        else "leave the voters until they keep"
                    )
                    text += f", and {until} up ({VOTERS_SHRINK})"
                print_line(f"partition {one.index}: {text}")
    for one in topic.partitions:
        promoted = [each for each in one.in_sync if each in observers[one.index]]
        if promoted:
            print_line(f"partition {one.index}: observer {ids(promoted)} stands in for a voter")
