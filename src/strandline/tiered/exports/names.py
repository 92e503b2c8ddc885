"""Names of exports in a bucket.

    <cluster id>/<topic id>/<partition>/manifest/<epoch>-<index>-<version>    one export
    <cluster id>/<topic id>/<partition>/pages/<first offset>-<random>         entries of exports
    <cluster id>/heads/<broker id>                                            newest exports, a hint
    <cluster id>/topics/t-<topic>/<topic id>                                  a topic with exports

Why:    a reader takes the highest name. Numbers have a fixed width, so that names sort as they do.
How:    the epoch is the leader's, which has committed an entry of it. The index is that of the last
        marker applied. So a leader that was deposed can only write under a lower name than its
        successor. After a declared loss the index may be lower, and the epoch is higher. `version`
        is the cluster's: the topic's configuration may change although the partition's log does
        not.
Source: decisions 0057 and 0061."""

from typing import NamedTuple
from uuid import UUID

import msgspec

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.numbers import join_numbers, split_numbers

_DIGITS = 10, 19, 12
"""Of the epoch, the index and the version."""
_OFFSET_DIGITS = (19,)


class ExportNumber(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Which export: the higher one is the newer truth."""

    epoch: Epoch
    index: Index
    version: int = 0
    """Of the cluster, as `model.cluster.Cluster` counts it."""

    def __str__(self) -> str:
        return join_numbers((self.epoch, self.index, self.version), _DIGITS)


def parse_number(text: str) -> ExportNumber | None:
    """The number that a name ends with; None if it is none."""
    numbers = split_numbers(text, _DIGITS)
    if numbers is None:
        return None
    epoch, index, version = numbers
    return ExportNumber(Epoch(epoch), Index(index), version)


class PartitionPlace(NamedTuple):
    """A partition of a cluster, as names in a bucket have it."""

    cluster_id: str
    topic_id: UUID
    partition: int

    @property
    def prefix(self) -> str:
        """What the names of all objects of the partition begin with."""
        return f"{self.cluster_id}/{self.topic_id}/{self.partition}/"

    @property
    def exports_prefix(self) -> str:
        """What the names of its exports begin with."""
        return f"{self.prefix}manifest/"

    @property
    def pages_prefix(self) -> str:
        """What the names of the pages of its exports begin with."""
        return f"{self.prefix}pages/"

    def export_name(self, number: ExportNumber) -> str:
        """The name of an export."""
        return f"{self.exports_prefix}{number}"

    def page_name(self, base_offset: Offset, attempt: str) -> str:
        """A page that begins there. `attempt` is random, so that no name is used twice."""
        return f"{self.pages_prefix}{join_numbers((base_offset,), _OFFSET_DIGITS)}-{attempt}"


def heads_prefix(cluster_id: str) -> str:
    """What the names of a cluster's heads begin with."""
    return f"{cluster_id}/heads/"


def heads_name(cluster_id: str, broker: BrokerId) -> str:
    """The hints of one broker."""
    return f"{heads_prefix(cluster_id)}{broker}"


def topics_prefix(cluster_id: str, topic: str = "") -> str:
    """What the names of a cluster's topic objects begin with; of one topic's, if it is named."""
    return f"{cluster_id}/topics/t-{topic}/" if topic else f"{cluster_id}/topics/"


def topic_name(cluster_id: str, topic: str, topic_id: UUID) -> str:
    """The object that says that a topic has exports."""
    return f"{topics_prefix(cluster_id, topic)}{topic_id}"
