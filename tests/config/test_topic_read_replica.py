"""Topic keys of read replicas: how a source is written, and what contradicts itself."""

from uuid import UUID

import pytest

from strandline.config.bucket_urls import BucketUrl
from strandline.config.topic import conflict_of, validate_topic_config
from strandline.config.topic_read_replica import (
    ReplicaOf,
    SourceId,
    parse_replica_of,
    parse_source_id,
)

BUCKET = BucketUrl("", "file", "/var/buckets/east")
URL = "file:///var/buckets/east"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (URL, ReplicaOf(BUCKET, "", "")),
        (URL + "#orders", ReplicaOf(BUCKET, "", "orders")),
        (URL + "#k7Yy0r/orders.v2", ReplicaOf(BUCKET, "k7Yy0r", "orders.v2")),
        (
            "s3://logs/prod?region=eu-west-1#c/orders",
            ReplicaOf(
                BucketUrl("", "s3", "logs", "prod", (("region", "eu-west-1"),)), "c", "orders"
            ),
        ),
    ],
)
def test_a_source_is_a_bucket_and_a_topic_of_it(text: str, source: ReplicaOf) -> None:
    assert parse_replica_of(text) == source
    assert validate_topic_config("read.replica.of", text) is None


@pytest.mark.parametrize(
    "text",
    ["orders", URL + "#c/", URL + "#/orders", URL + "#a/b/c", URL + "#a#b", "s3://key:x@logs"],
)
def test_another_text_is_refused(text: str) -> None:
    reason = validate_topic_config("read.replica.of", text)
    assert reason is not None
    assert reason.startswith("read.replica.of must" if "@" not in text else "read.replica.of has")


def test_ids_of_a_source_are_written_as_they_are_read() -> None:
    source = SourceId("k7Yy0r", UUID(int=5))
    assert parse_source_id(str(source)) == source
    for text in ("k7Yy0r", "/6e2ad3c0", "k7Yy0r/6e2ad3c0"):
        assert "must look like" in str(validate_topic_config("read.replica.source.id", text))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("remote.storage.enable", "true", "remote.storage.enable cannot be true"),
        ("cleanup.policy", "delete,compact", "never compacted"),
    ],
)
def test_a_copy_is_neither_uploaded_nor_compacted(key: str, value: str, reason: str) -> None:
    found = conflict_of({}, {"read.replica.of": URL, key: value})
    assert found is not None
    assert reason in found
    assert conflict_of({}, {"read.replica.of": URL, "retention.ms": "-1"}) is None
    assert conflict_of({}, {"read.replica.source.id": f"c/{UUID(int=5)}"}) is not None
