"""Where a new topic begins, if it takes the place of one of a lost cluster.

Why:    the records of a restored partition keep their offsets, and so do the groups that read it.
How:    a request to create a topic may have these keys. They are no configuration: they are not
        stored, and cannot be changed.

            restore.start.offsets  where the log of each partition begins: 5,0,120
            restore.history        the records before its log that a bucket has, of each partition:
                                   BUCKET:START:END:GRANT, with the grant of its first epochs; or
                                   :END:END:GRANT, if none is left; or -, if there never was one
            restore.topic.id       the id by which the buckets know it
Source: decisions 0063 and 0067."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from strandline.base.errors import ApiError
from strandline.config.topic import TopicConfig
from strandline.controller.decision import Beginning, Facts, refuse
from strandline.controller.placing.policies import policy_in_force
from strandline.model.cluster import BucketRange
from strandline.model.ids import GRANT_MAX
from strandline.placement.buckets import allowed_buckets
from strandline.protocol.errors import Error

STARTS = "restore.start.offsets"
HISTORY = "restore.history"
TOPIC_ID = "restore.topic.id"
OFFSET_MAX = (1 << 62) - 1
KEYS = STARTS, HISTORY, TOPIC_ID
NOTHING = "-"
Configs = tuple[tuple[str, str | None], ...]
_PART = re.compile(r"(?P<bucket>[^:,]*):(?P<start>\d{1,19}):(?P<end>\d{1,19}):(?P<grant>\d{1,4})")


@dataclass(frozen=True, slots=True)
class Restored:
    """What such a request says. `beginnings`: one for each partition, or none. `topic_id`: None for
    a new one."""

    beginnings: tuple[Beginning, ...] = ()
    topic_id: UUID | None = None

    def require_count(self, partitions: int) -> None:
        """Raises ApiError if it speaks of another number of partitions."""
        if len(self.beginnings) not in (0, partitions):
            raise _invalid(
                f"{STARTS} or {HISTORY} has {len(self.beginnings)} offsets for {partitions} "
                "partitions"
            )

    def require_buckets(self, facts: Facts, configs: dict[str, str]) -> None:
        """Raises ApiError if the topic has a history, and no tiered storage to read it."""
        wanted = {one.bucket for each in self.beginnings for one in each.history}
        if not wanted:
            return
        cluster = facts.state.cluster.cluster_configs
        if not TopicConfig.from_overrides(cluster, configs).remote_storage_enable:
            raise _invalid(f"{HISTORY} needs remote.storage.enable=true")
        allowed = allowed_buckets(policy_in_force(configs, cluster), facts.buckets)
        unknown = sorted(wanted.difference(allowed))
        if unknown:
            raise _invalid(
                f"{HISTORY}: the topic may not have a bucket {', '.join(unknown)} in this cluster: "
                f"its buckets are {', '.join(allowed)}"
            )


def restored_of(
    facts: Facts, configs: Iterable[tuple[str, str | None]]
) -> tuple[Restored, Configs]:
    """(what is restored, the other configuration). Raises ApiError."""
    given = {name: value or "" for name, value in configs if name in KEYS}
    others = tuple(one for one in configs if one[0] not in given)
    if not given:
        return Restored(), others
    if STARTS in given and HISTORY in given:
        raise _invalid(f"give {STARTS} or {HISTORY}, not both")
    beginnings: tuple[Beginning, ...] = ()
    if STARTS in given:
        beginnings = tuple(map(_start, given[STARTS].split(",")))
    if HISTORY in given:
        beginnings = tuple(map(_history, given[HISTORY].split(",")))
    topic_id = _topic_id(facts, given[TOPIC_ID]) if TOPIC_ID in given else None
    if facts.without_tiering:
        brokers = ", ".join(map(str, sorted(facts.without_tiering)))
        raise _invalid(
            f"{', '.join(given)} needs every broker's release to know it: brokers {brokers} are "
            "down, or are of an earlier release"
        )
    return Restored(beginnings, topic_id), others


def _start(text: str) -> Beginning:
    if not (text.isascii() and text.isdecimal() and int(text) <= OFFSET_MAX):
        raise _invalid(f"{STARTS} must be one offset for each partition")
    return Beginning(int(text))


def _history(text: str) -> Beginning:
    if text == NOTHING:
        return Beginning()
    found = _PART.fullmatch(text)
    if found is None:
        raise _invalid(f"{HISTORY}: {text[:100]} is not BUCKET:START:END:GRANT, nor {NOTHING}")
    start, end, grant = (int(found[one]) for one in ("start", "end", "grant"))
    bucket = found["bucket"]
    is_sound = start < end if bucket else 0 < start == end
    if not (is_sound and end <= OFFSET_MAX and 0 < grant <= GRANT_MAX):
        raise _invalid(f"{HISTORY}: {text[:100]}: its offsets or its grant are out of bounds")
    return Beginning(end, grant, (BucketRange(bucket, start, end),) if bucket else ())


def _topic_id(facts: Facts, text: str) -> UUID:
    """Raises ApiError TOPIC_ALREADY_EXISTS for the id of a topic that is there, and
    INCONSISTENT_TOPIC_ID for one that was deleted: its objects are being deleted."""
    try:
        topic_id = UUID(text)
    except ValueError:
        raise _invalid(f"{TOPIC_ID}: {text[:100]} is no UUID") from None
    cluster = facts.state.cluster
    if topic_id in cluster.topic_names:
        raise refuse(Error.TOPIC_ALREADY_EXISTS, f"topic {cluster.topic_names[topic_id]} has it")
    if topic_id in cluster.deleted_tiered:
        raise refuse(Error.INCONSISTENT_TOPIC_ID, f"{TOPIC_ID}: a deleted topic had {topic_id}")
    return topic_id


def _invalid(reason: str) -> ApiError:
    return refuse(Error.INVALID_CONFIG, reason)
