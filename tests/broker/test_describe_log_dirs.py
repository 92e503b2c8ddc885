"""DescribeLogDirs: sizes, lags and room. Source: KIP-113, KIP-827."""

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

EVERYTHING = DescribeLogDirsRequest(topics=None)


def log_dir(world: BrokerWorld, request: DescribeLogDirsRequest) -> DescribeLogDirsResult:
    """The one directory."""
    answer = world.ask(request, DescribeLogDirsResponse, 5)
    assert answer.error_code == 0
    (result,) = answer.results
    return result


def logs(result: DescribeLogDirsResult) -> dict[tuple[str, int], DescribeLogDirsPartition]:
    return {(one.name, log.partition_index): log for one in result.topics for log in one.partitions}


@pytest.mark.parametrize("version", range(1, 6))
def test_sizes_are_told_in_every_version(world: BrokerWorld, version: int) -> None:
    first, second = world.add_topic("t", 2)
    world.add_remote_topic("elsewhere")
    second.write(b"x" * 1_000)
    answer = world.ask(EVERYTHING, DescribeLogDirsResponse, version)
    (result,) = answer.results
    assert (result.error_code, result.log_dir) == (0, "/data")
    found = logs(result)
    assert {place: log.partition_size for place, log in found.items()} == {
        ("t", 0): first.log.size_bytes(),
        ("t", 1): second.log.size_bytes(),
    }
    assert found["t", 1].partition_size > 1_000
    assert not any(log.offset_lag or log.is_future_key for log in found.values())
    room = (result.total_bytes, result.usable_bytes)
    disk = world.disk
    expected = (disk.total_bytes("/data"), disk.free_bytes("/data")) if version >= 4 else (-1, -1)
    assert room == expected
    assert not result.is_cordoned


def test_only_what_is_asked_for_and_is_here_is_told_and_once(world: BrokerWorld) -> None:
    world.add_topic("t", 3)
    world.add_topic("u")
    world.add_remote_topic("elsewhere")
    topics = [
        DescribableLogDirTopic("t", [2, 7, 2]),
        DescribableLogDirTopic("t", [2, 0]),
        DescribableLogDirTopic("elsewhere", [0]),
        DescribableLogDirTopic("nowhere", [0]),
    ]
    assert list(logs(log_dir(world, DescribeLogDirsRequest(topics=topics)))) == [("t", 2), ("t", 0)]
    assert logs(log_dir(world, DescribeLogDirsRequest(topics=[]))) == {}


def test_a_log_lags_by_what_it_lacks_up_to_the_high_watermark(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.high_watermark = type(replica.high_watermark)(replica.log.end_offset + 5)
    assert logs(log_dir(world, EVERYTHING))["t", 0].offset_lag == 5


def test_a_log_that_failed_is_left_out(world: BrokerWorld) -> None:
    broken, _ = world.add_topic("t", 2)
    broken.failed = OSError(5, "the disk failed")
    assert list(logs(log_dir(world, EVERYTHING))) == [("t", 1)]


def test_a_disk_that_does_not_answer_is_an_error_of_the_directory(
    world: BrokerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_topic("t")

    def fail(path: str) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(world.disk, "free_bytes", fail)
    assert log_dir(world, EVERYTHING).error_code == Error.KAFKA_STORAGE_ERROR
