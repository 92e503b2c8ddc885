"""Which partitions get no leader by themselves although their brokers answer: their logs are lost.

Why:    the controller hears a broker that came back with an empty disk. So it expects an election
        that needs votes which replicas without their logs do not give.
How:    each broker names the partitions without a leader whose log it has lost. Replicas that are
        left and have their logs must be a majority of the voters.
Source: docs/operating/outages.md, "All logs of a partition are lost"; decision 0046."""

from typing import NamedTuple

import msgspec

from strandline.client.operations.cluster_status import ClusterStatus
from strandline.placement.survival.course import Course
from strandline.protocol.messages.describe_status import StatusPartitions


class LostLogs(NamedTuple):
    """Partitions of one topic that elect no leader. `brokers`: those that have lost their logs;
    `is_all`: all voters that answer have lost theirs; `has_buckets`: the topic is tiered."""

    topic: str
    partitions: tuple[int, ...]
    brokers: tuple[int, ...]
    is_all: bool
    has_buckets: bool


def split_leaderless(found: ClusterStatus) -> tuple[list[StatusPartitions], list[LostLogs]]:
    """The partitions without a leader: those that fare as the best informed broker says, and those
    that have lost too many logs."""
    brokers: dict[tuple[str, int], list[int]] = {}
    tiered: set[str] = set()
    for id, answer in sorted(found.answers.items()):
        for one in answer.lost_logs:
            if one.has_buckets:
                tiered.add(one.topic)
            for partition in one.partitions:
                brokers.setdefault((one.topic, partition), []).append(id)
    others: list[StatusPartitions] = []
    lost: dict[tuple[str, tuple[int, ...], bool], list[int]] = {}
    for entry in found.best.leaderless:
        kept = []
        for partition in entry.partitions:
            where = tuple(brokers.get((entry.topic, partition), ()))
            left = entry.left - len(where)
            if entry.course != Course.ELECTION or left > entry.voters // 2:
                kept.append(partition)
            else:
                lost.setdefault((entry.topic, where, left <= 0), []).append(partition)
        if kept:
            others.append(msgspec.structs.replace(entry, partitions=kept))
    return others, [
        LostLogs(topic, tuple(partitions), where, is_all, topic in tiered)
        for (topic, where, is_all), partitions in lost.items()
    ]
