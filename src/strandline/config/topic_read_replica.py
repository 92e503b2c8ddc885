"""The keys of a topic that another cluster's bucket serves, and how its source is written.

    read.replica.of          URL[#cluster id/topic]
    read.replica.source.id   cluster id/topic id

Why:    the URL says where the bucket is; the ids say which of its topics it is, also after the
        source was deleted and made again under the same name.
How:    without a part after `#` the source has the topic's own name, in the only cluster of the
        bucket. The broker that creates the topic looks into the bucket and stores the ids.
Owns:   nothing.
Source: decision 0061."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from strandline.config.bucket_urls import BucketUrl, parse_url
from strandline.config.keys import Value, key
from strandline.config.topic_tiering import TopicTiering

READ_REPLICA_OF = "read.replica.of"
SOURCE_ID = "read.replica.source.id"
NO_LIMIT = -1


class ReplicaOf(NamedTuple):
    """The source as it is written; empty parts are not given."""

    url: BucketUrl
    cluster_id: str
    topic: str


class SourceId(NamedTuple):
    """The source as it is found in its bucket."""

    cluster_id: str
    topic_id: UUID

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.topic_id}"


def parse_replica_of(text: str) -> ReplicaOf:
    """Read `URL[#cluster id/topic]`, `URL#topic` too; raises ValueError with the reason."""
    url, _, source = text.partition("#")
    cluster_id, slash, topic = source.rpartition("/")
    if "#" in source or "/" in cluster_id or (slash and not (cluster_id and topic)):
        raise ValueError(
            f"must end as in #cluster-id/topic, or #topic, or name the bucket alone, not {source!r}"
        )
    return ReplicaOf(parse_url(url), cluster_id, topic)


def parse_source_id(text: str) -> SourceId:
    """Read `cluster id/topic id`; raises ValueError with the reason."""
    cluster_id, _, topic_id = text.partition("/")
    try:
        if cluster_id:
            return SourceId(cluster_id, UUID(topic_id))
    except ValueError:
        pass
    raise ValueError(f"must look like cluster-id/topic-id, not {text[:100]!r}")


def _check_replica_of(value: Value) -> str | None:
    return _reason(str(value)) if value else None


def _reason(text: str) -> str | None:
    try:
        parse_replica_of(text)
    except ValueError as error:
        return str(error)
    return None


def _check_source_id(value: Value) -> str | None:
    try:
        if value:
            parse_source_id(str(value))
    except ValueError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReadReplica(TopicTiering):
    """The part of a topic's configuration that is about another cluster's bucket; with those above,
    because classes with slots have one parent."""

    read_replica_max_staleness_ms: int = key(
        NO_LIMIT,
        "With `read.replica.of`: how old the newest statement of the source's bucket may be. If it "
        "is older, reads get an error that clients retry. -1: reads go on with what there is.",
        own=True,
        unit="ms",
        minimum=NO_LIMIT,
        reloadable=True,
        example="300000",
        long=True,
    )
    read_replica_of: str = key(
        "",
        "The topic is a read-only copy of another cluster's topic: its records are read from that "
        "cluster's bucket, and nothing else of it is needed. A URL as in `[tiered] buckets`, then "
        "`#cluster-id/topic`, where the bucket has several clusters, or the topic another name. "
        "Only a new topic can get it, and it stays.",
        own=True,
        check=_check_replica_of,
        example="s3://log-east/prod?region=us-east-1#k7Yy0r/orders",
    )
    read_replica_source_id: str = key(
        "",
        "With `read.replica.of`: the ids of the source's cluster and topic. The broker that "
        "creates the topic finds them in the bucket.",
        own=True,
        check=_check_source_id,
        example="k7Yy0r/6e2ad3c0-3f0c-4a6e-9d6e-0a7f8b9c0d1e",
    )


def read_replica_conflict(overrides: Mapping[str, str]) -> str | None:
    """Why a topic with these keys of its own contradicts itself; None when it does not."""
    if not overrides.get(READ_REPLICA_OF):
        if overrides.get(SOURCE_ID):
            return f"{SOURCE_ID} needs {READ_REPLICA_OF}"
        return None
    if overrides.get("remote.storage.enable", "false").strip().lower() == "true":
        return (
            f"remote.storage.enable cannot be true for a topic with {READ_REPLICA_OF}: its records "
            "are in a bucket already"
        )
    if "compact" in overrides.get("cleanup.policy", ""):
        return f"a topic with {READ_REPLICA_OF} is never compacted: leave cleanup.policy out"
    return None
