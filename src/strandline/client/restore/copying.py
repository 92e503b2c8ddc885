"""Carries a plan out by producing its records: for a cluster without tiered storage.

Why:    the other cluster has to own what it serves: the lost one's buckets may be on their way out,
        and two clusters never share a prefix.
How:    each topic --created, each partition beginning where its first object begins--> records are
        produced in order, so that they get their offsets --> deleted ones are deleted again -->
        the topic's own retention, time-stamps and compaction --> committed offsets
        Produced records are idempotent within one run. A run that was interrupted goes on where
        each partition ends.
Owns:   nothing.
Source: decision 0063."""

from asyncio import Runner
from collections.abc import Iterator, Mapping
from dataclasses import replace

from strandline.base.errors import ApiError, OperatorError
from strandline.client.admin import (
    EARLIEST,
    LATEST,
    NewTopic,
    create_topic,
    delete_records,
    list_offsets,
)
from strandline.client.cluster import Client
from strandline.client.operations.configs import alter_topic_configs
from strandline.client.producer import Producer, ProducerSettings
from strandline.client.restore.offsets import Say, changed_configs, commit_offsets
from strandline.client.restore.plan import PlannedTopic, RestorePlan, Stores
from strandline.client.restore.source import SourceBatch, read_batches
from strandline.config.topic import is_compacted
from strandline.controller.placing.start_offsets import STARTS
from strandline.model.ids import Offset
from strandline.protocol.errors import Error

LZ4 = 3
LONG_MAX = str((1 << 63) - 1)
WHILE_COPYING = {
    "cleanup.policy": "delete",
    "max.message.bytes": str(128 << 20),
    "message.timestamp.after.max.ms": LONG_MAX,
    "message.timestamp.before.max.ms": LONG_MAX,
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
    "strandline.retention.records": "-1",
}
"""A topic's configuration while its records come back: none of them may go, or be refused."""


def carry_out(
    client: Client,
    runner: Runner,
    stores: Stores,
    plan: RestorePlan,
    *,
    changes: Mapping[str, str | None],
    say: Say,
) -> None:
    """Restore everything that the plan has; `say` gets a line for each step. `changes`: keys that
    every topic gets another value of, or none. Raises OperatorError, ApiError, StoreError; another
    run goes on."""
    _refuse_compacted(plan)
    for lost in plan.topics:
        topic = replace(lost, configs=changed_configs(lost.configs, changes))
        _begin(client, topic)
        count = _copy(client, runner, stores, topic)
        _delete_again(client, topic)
        own = {key: topic.configs.get(key) for key in (*WHILE_COPYING, *changes)}
        alter_topic_configs(client, topic.name, {**own, **topic.configs})
        say(f"topic {topic.name}: {count} records copied")
    commit_offsets(client, plan, say)


def _refuse_compacted(plan: RestorePlan) -> None:
    """Raises OperatorError if offsets of a topic may have gaps: no producer can make these."""
    for topic in plan.topics:
        if any(one.export is not None for one in topic.partitions) and is_compacted(
            plan.cluster_configs, topic.configs
        ):
            raise OperatorError(
                f"topic {topic.name} is compacted, so its offsets have gaps, and records that are "
                "produced again have none: give the brokers of this cluster buckets ([tiered] "
                "buckets), then its objects are copied; or name the other topics with --topics"
            )


def _first(topic: PlannedTopic, index: int) -> Offset:
    """Where the partition's log begins: the first object may have deleted records, too."""
    one = topic.partitions[index]
    if one.export is None or not one.export.live:
        return one.end
    return one.export.live[0].base_offset


def _begin(client: Client, topic: PlannedTopic) -> None:
    """Create a topic, unless an earlier run has begun it."""
    starts = [_first(topic, one.index) for one in topic.partitions]
    configs = {**topic.configs, **WHILE_COPYING, STARTS: ",".join(map(str, starts))}
    try:
        create_topic(client, NewTopic(topic.name, len(starts), configs=tuple(configs.items())))
    except ApiError as error:
        if error.code != Error.TOPIC_ALREADY_EXISTS:
            raise
    first = list_offsets(client, topic.name, EARLIEST)
    end = list_offsets(client, topic.name, LATEST)
    for one in topic.partitions:
        is_begun = starts[one.index] <= first.get(one.index, -1) <= max(one.start, one.end)
        if len(first) != len(starts) or not is_begun or end[one.index] > one.end:
            raise OperatorError(
                f"topic {topic.name} exists in this cluster, and is not what a restore has begun: "
                "delete it there, or leave it out with --topics"
            )


def _copy(client: Client, runner: Runner, stores: Stores, topic: PlannedTopic) -> int:
    """Produce what is missing of each partition, side by side; how many records that was."""
    ends = list_offsets(client, topic.name, LATEST)
    producer = Producer(client, topic.name, ProducerSettings(codec=LZ4))
    sources: dict[int, Iterator[SourceBatch]] = {
        one.index: read_batches(
            runner, stores[one.bucket], one.export.live, Offset(ends[one.index])
        )
        for one in topic.partitions
        if one.export is not None
    }
    count = 0
    while sources:
        for index in list(sources):
            batch = next(sources[index], None)
            if batch is None:
                del sources[index]
                continue
            header = batch.header
            count += header.records_count
            producer.send_encoded(
                index,
                batch.records,
                records_count=header.records_count,
                timestamps=batch.timestamps,
            )
    producer.flush()
    for index, tally in producer.acknowledged.items():
        wanted = ends[index], topic.partitions[index].end - 1
        if (tally.first_offset, tally.last_offset) != wanted:
            raise OperatorError(
                f"{topic.name}-{index}: the records got the offsets {tally.first_offset} to "
                f"{tally.last_offset}, not {wanted[0]} to {wanted[1]}: does another client write?"
            )
    return count


def _delete_again(client: Client, topic: PlannedTopic) -> None:
    for one in topic.partitions:
        if one.start > _first(topic, one.index):
            delete_records(client, topic.name, one.index, one.start)
