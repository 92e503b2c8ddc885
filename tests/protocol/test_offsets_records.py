"""Records of `__consumer_offsets` and group members' blobs are, byte for byte, what Kafka writes.

The bytes here were written by Kafka 4.4's own classes."""

from uuid import UUID

import pytest

from strandline.base.errors import ProtocolError
from strandline.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from strandline.protocol.offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

OFFSET_KEY = "000000016700076dc3a974c3a96f00000007"
OFFSET_4 = "0004000000000000002a00000003026d0000018bcfe5680001001000000000000000010000000000000002"
OFFSET_3 = "0003000000000000002a0000000300016d0000018bcfe56800"
OFFSET_1 = "0001000000000000002a00016d0000018bcfe568000000018bcfe56801"
GROUP_3 = (
    "00030008636f6e73756d657200000005000572616e6765ffff0000018bcfe568000000000100036d2d31"
    "00016900016300022f68000493e00000afc80000000201020000000103"
)
GROUP_4 = (
    "000409636f6e73756d6572000000050672616e6765000000018bcfe5680002046d2d3102690263032f68"
    "000493e00000afc803010202030000"
)
SUBSCRIPTION = (
    "000300000002000174000175ffffffff0000000100017400000002000000000000000100000004000172"
)
ASSIGNMENT = "0003000000010001740000000200000000000000010000000109"

TIME = 1_700_000_000_000


def test_keys_are_written_as_kafka_writes_them() -> None:
    offset = OffsetCommitKey("g", "météo", 7)
    # Kafka's record serde puts the kind where its schema has a version; old offsets have kind 0.
    assert decode_key(bytes.fromhex(OFFSET_KEY)) == offset
    assert encode_key(offset) == b"\0\1" + bytes.fromhex(OFFSET_KEY)[2:]
    assert encode_key(GroupMetadataKey("g")) == bytes.fromhex("0002000167")
    for key in (offset, GroupMetadataKey("g")):
        assert decode_key(encode_key(key)) == key


def test_other_kinds_of_keys_are_skipped() -> None:
    for kind in (3, 4, 5, 6, 7, 8, 16, -1):
        assert decode_key(kind.to_bytes(2, "big", signed=True) + b"whatever") is None
        assert decode_key(kind.to_bytes(2, "big", signed=True)) is None


def test_offsets_are_written_as_kafka_writes_them() -> None:
    value = OffsetCommitValue(42, 3, "m", TIME, topic_id=UUID(int=(1 << 64) + 2))
    assert encode_value(value) == bytes.fromhex(OFFSET_4)
    assert decode_value(OffsetCommitValue, bytes.fromhex(OFFSET_4)) == value
    plain = OffsetCommitValue(42, 3, "m", TIME)
    assert encode_value(plain, 3) == bytes.fromhex(OFFSET_3)
    assert decode_value(OffsetCommitValue, bytes.fromhex(OFFSET_3)) == plain
    expiring = OffsetCommitValue(42, -1, "m", TIME, TIME + 1)
    assert encode_value(expiring) == bytes.fromhex(OFFSET_1)
    assert decode_value(OffsetCommitValue, bytes.fromhex(OFFSET_1)) == expiring


def test_groups_are_written_as_kafka_writes_them() -> None:
    member = MemberMetadata("m-1", "i", "c", "/h", 300_000, 45_000, b"\1\2", b"\3")
    value = GroupMetadataValue("consumer", 5, "range", None, TIME, [member])
    assert encode_value(value) == bytes.fromhex(GROUP_3)
    assert encode_value(value, 4) == bytes.fromhex(GROUP_4)
    for data in (GROUP_3, GROUP_4):
        assert decode_value(GroupMetadataValue, bytes.fromhex(data)) == value


def test_values_of_unknown_versions_are_refused() -> None:
    for data in (b"", b"\0", b"\0\5" + b"\0" * 40, b"\xff\xff" + b"\0" * 40):
        with pytest.raises(ProtocolError):
            decode_value(OffsetCommitValue, data)
    with pytest.raises(ProtocolError):
        decode_key(b"\0")


def test_subscriptions_and_assignments_are_written_as_kafka_writes_them() -> None:
    owned = [TopicPartition("t", [0, 1])]
    subscription = ConsumerProtocolSubscription(["t", "u"], None, owned, 4, "r")
    assert encode_subscription(subscription) == bytes.fromhex(SUBSCRIPTION)
    assert decode_subscription(bytes.fromhex(SUBSCRIPTION)) == subscription
    assignment = ConsumerProtocolAssignment(owned, b"\x09")
    assert encode_assignment(assignment) == bytes.fromhex(ASSIGNMENT)
    assert decode_assignment(bytes.fromhex(ASSIGNMENT)) == assignment


def test_subscriptions_and_assignments_have_all_versions_up_to_ours() -> None:
    owned = [TopicPartition("t", [0, 1])]
    full = ConsumerProtocolSubscription(["t"], b"\x09", owned, 4, "r")
    fields = [
        ConsumerProtocolSubscription(["t"], b"\x09"),
        ConsumerProtocolSubscription(["t"], b"\x09", owned),
        ConsumerProtocolSubscription(["t"], b"\x09", owned, 4),
        full,
    ]
    for version, carried in enumerate(fields):
        data = encode_subscription(full, version)
        assert data[:2] == version.to_bytes(2, "big")
        assert decode_subscription(data) == carried
        assignment = ConsumerProtocolAssignment(owned, None)
        assert decode_assignment(encode_assignment(assignment, version)) == assignment


@pytest.mark.parametrize("version", ("ffff", "8000"))
def test_a_negative_version_is_refused_whatever_follows(version: str) -> None:
    for data in (SUBSCRIPTION, ASSIGNMENT):
        with pytest.raises(ProtocolError, match="of version -"):
            decode_assignment(bytes.fromhex(version + data[4:]))
        with pytest.raises(ProtocolError, match="of version -"):
            decode_subscription(bytes.fromhex(version + data[4:]))
    with pytest.raises(ProtocolError, match="of version -"):
        decode_value(OffsetCommitValue, bytes.fromhex(version + OFFSET_4[4:]))


def test_a_newer_subscription_is_read_as_our_newest() -> None:
    newer = bytes.fromhex("0004" + SUBSCRIPTION[4:] + "beef")
    assert decode_subscription(newer) == decode_subscription(bytes.fromhex(SUBSCRIPTION))
