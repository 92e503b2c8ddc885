"""Names of segments' objects in a bucket: no two attempts share one.

How:    <cluster id>/<topic id>/<partition>/<base offset, 20 digits>-<epoch>-<random>.segment
        Names of one partition sort by base offset.
Source: decision 0057."""

import re
from typing import NamedTuple

from strandline.base.rng import Rng
from strandline.model.ids import Epoch, Offset

SUFFIX = ".segment"
_NAME = re.compile(
    r"(?P<cluster>[^/]+)/(?P<topic>[^/]+)/(?P<partition>\d+)/"
    r"(?P<base>\d{20})-(?P<epoch>\d+)-(?P<attempt>[0-9a-f]{16})\.segment"
)


class SegmentName(NamedTuple):
    """A name, read."""

    cluster_id: str
    topic_id: str
    partition: int
    base_offset: Offset
    epoch: Epoch
    """Of the leader that proposed the upload."""
    attempt: str
    """16 hexadecimal digits, drawn for each attempt."""

    def __str__(self) -> str:
        """The object's name."""
        prefix = partition_prefix(self.cluster_id, self.topic_id, self.partition)
        return f"{prefix}{self.base_offset:020d}-{self.epoch}-{self.attempt}{SUFFIX}"


def partition_prefix(cluster_id: str, topic_id: str, partition: int) -> str:
    """With this begin the names of all of a partition's objects."""
    return f"{cluster_id}/{topic_id}/{partition}/"


def draw_attempt(rng: Rng) -> str:
    """A new attempt, as it stands in a name."""
    return f"{rng.getrandbits(64):016x}"


def parse_segment_name(name: str) -> SegmentName | None:
    """The parts of a segment's name; None if the name is of something else."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return SegmentName(
        found["cluster"],
        found["topic"],
        int(found["partition"]),
        Offset(int(found["base"])),
        Epoch(int(found["epoch"])),
        found["attempt"],
    )
