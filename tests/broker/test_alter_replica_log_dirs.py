"""AlterReplicaLogDirs: one directory, so a log is in it already or cannot go elsewhere.

Source: KIP-113."""

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)


def alter(
    world: BrokerWorld, *wanted: tuple[str, str, int], version: int = 2
) -> dict[tuple[str, int], int]:
    """{(topic, index): error} of wishes (path, topic, index)."""
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [index])])
            for path, topic, index in wanted
        ]
    )
    answer = world.ask(request, AlterReplicaLogDirsResponse, version)
    return {
        (topic.topic_name, one.partition_index): one.error_code
        for topic in answer.results
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_log_stays_in_the_one_directory(world: BrokerWorld, version: int) -> None:
    world.add_topic("t", 2)
    found = alter(world, ("/data", "t", 0), ("/other", "t", 1), version=version)
    assert found == {("t", 0): 0, ("t", 1): Error.LOG_DIR_NOT_FOUND}


def test_a_log_that_is_not_here_or_failed_or_unknown_is_an_error(world: BrokerWorld) -> None:
    (broken,) = world.add_topic("t")
    broken.failed = OSError(5, "the disk failed")
    world.add_remote_topic("elsewhere")
    found = alter(world, ("/data", "t", 0), ("/data", "elsewhere", 0), ("/data", "t", 9))
    assert found == {
        ("t", 0): Error.KAFKA_STORAGE_ERROR,
        ("elsewhere", 0): Error.REPLICA_NOT_AVAILABLE,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_the_last_directory_that_names_a_log_counts(world: BrokerWorld) -> None:
    world.add_topic("t")
    assert alter(world, ("/other", "t", 0), ("/data", "t", 0)) == {("t", 0): 0}
