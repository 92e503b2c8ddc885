"""How a class body is read as a table."""

from typing import Annotated
from uuid import UUID

import pytest

from strandline.base.errors import ProtocolError
from strandline.protocol.codec import decode, encode, is_flexible
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from strandline.protocol.messages.produce import LeaderIdAndEpoch, ProduceResponse
from strandline.protocol.table import F, Message, VersionRange, columns, min_size_bytes


class Inner(Message):
    """A structure with every kind of number."""

    small: Annotated[int, F("int8")] = 0
    short: Annotated[int, F("uint16")] = 0
    medium: Annotated[int, F("uint32")] = 0
    ratio: Annotated[float, F("float64")] = 0.0


class Lists(Message):
    """Arrays of what has one size, and of what has not."""

    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    flags: Annotated[list[bool], F("[]bool")] = []  # noqa: RUF012
    ids: Annotated[list[UUID], F("[]uuid")] = []  # noqa: RUF012
    blobs: Annotated[list[bytes], F("[]bytes")] = []  # noqa: RUF012


class Texts(Message):
    """What has a length in front."""

    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    name: Annotated[str, F("string")] = ""
    blob: Annotated[bytes, F("bytes")] = b""


class Outer(Message):
    """A message with a structure that may be null, and one that may be left out."""

    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    inner: Annotated[Inner | None, F("struct", nullable="1+")] = None
    tagged: Annotated[Inner | None, F("struct", "1+", tag=3, nullable="1+")] = None
    names: Annotated[list[str] | None, F("[]string", nullable="0+")] = None


def test_version_ranges_are_read_as_kafka_writes_them() -> None:
    assert VersionRange.parse("3-7") == (3, 7)
    assert VersionRange.parse("5") == (5, 5)
    assert VersionRange.parse("2+").has(30_000) and not VersionRange.parse("2+").has(1)
    assert not any(map(VersionRange.parse("none").has, range(100)))
    assert [version for version in range(10) if VersionRange.parse("3-7").has(version)] == [
        3, 4, 5, 6, 7,
    ]  # fmt: skip
    assert [version for version in range(10) if VersionRange.parse("5").has(version)] == [5]
    assert VersionRange.parse("2+").has(2)


def test_a_column_tells_all_about_its_field() -> None:
    by_name = {column.name: column for column in columns(PartitionData)}
    leader = by_name["current_leader"]
    assert (leader.wire, leader.is_array, leader.tag) == ("struct", False, 1)
    assert leader.versions == VersionRange.parse("12+")
    aborted = by_name["aborted_transactions"]
    assert aborted.is_array and aborted.default == () and aborted.nullable.has(4)


def test_the_smallest_size_is_that_of_the_smallest_message() -> None:
    assert min_size_bytes(FetchPartition, 4, flexible=False) == 16
    assert min_size_bytes(FetchPartition, 12, flexible=True) == 33
    assert min_size_bytes(Outer, 1, flexible=True) == 3
    assert (
        min_size_bytes(Outer, 0, flexible=False)
        == min_size_bytes(Inner, 0, flexible=False) + 4
        == 19
    )
    assert min_size_bytes(Lists, 0, flexible=False) == 12
    assert min_size_bytes(Lists, 1, flexible=True) == 4
    assert min_size_bytes(Texts, 0, flexible=False) == 2 + 4
    assert min_size_bytes(Texts, 1, flexible=True) == 1 + 1 + 1


@pytest.mark.parametrize(("cls", "version"), [(Texts, 0), (Texts, 1), (Lists, 0), (Lists, 1)])
def test_the_smallest_message_takes_the_smallest_size(cls: type[Message], version: int) -> None:
    assert len(encode(cls(), version)) == min_size_bytes(cls, version, flexible=version == 1)


def test_structures_may_be_null_and_may_be_tagged() -> None:
    inner = Inner(-1, 65_535, 2**32 - 1, 0.5)
    for message in (Outer(), Outer(inner), Outer(None, inner, []), Outer(inner, inner, ["é"])):
        written = encode(message, 1)
        assert decode(Outer, written, 0, 1) == (message, len(written))
    assert encode(Outer(), 1) == b"\xff\0\0"
    assert encode(Outer(Inner(), names=[]), 0) == b"\0" * 15 + b"\0" * 4


def test_arrays_hold_any_kind_of_value() -> None:
    message = Lists([True, False], [UUID(int=1), UUID(int=0)], [b"", b"b"])
    for version in (0, 1):
        for sent in (message, Lists()):
            written = encode(sent, version)
            assert decode(Lists, written, 0, version) == (sent, len(written))
            for length in range(len(written)):
                with pytest.raises(ProtocolError):
                    decode(Lists, written[:length], 0, version)


def test_a_structure_needs_to_be_told_whether_it_is_flexible() -> None:
    leader = LeaderIdAndEpoch(1, 2)
    written = encode(leader, 10, flexible=True)
    assert decode(LeaderIdAndEpoch, written, 0, 10, flexible=True) == (leader, 9)
    with pytest.raises(AssertionError):
        encode(leader, 10)


def test_versions_that_a_message_does_not_have_are_mistakes_of_the_program() -> None:
    for version in (2, 14):
        with pytest.raises(AssertionError):
            encode(ProduceResponse(), version)
    assert not is_flexible(FetchRequest, 11) and is_flexible(FetchRequest, 12)


def test_defaults_are_not_shared_between_messages() -> None:
    FetchRequest().topics.append(None)  # type: ignore[arg-type]
    assert FetchRequest().topics == []
    first, _ = decode(FetchRequest, encode(FetchRequest(), 7), 0, 7)
    second, _ = decode(FetchRequest, encode(FetchRequest(), 7), 0, 7)
    assert first.topics is not second.topics
