"""The looks of the hostile target find what they are for, and a short real run finds nothing."""

from pathlib import Path
from random import Random

import pytest
from fuzz.hostile.cluster import GROUP, RECORD, TOPIC, Ports, SecureBroker, secure_broker
from fuzz.hostile.target import HostileTarget, judge_log
from fuzz.hostile.wire import FindingError
from fuzz.hostile.world import World, errors_of

from strandline.protocol.apis import API_KEYS, APIS
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from strandline.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from strandline.security.authority import Authority

ROUNDS = 2


@pytest.fixture
def world(tmp_path: Path) -> World:
    broker = SecureBroker(tmp_path, Ports(1, 2, 3, 4), 1, Authority(tmp_path), b"\x07" * 16)
    return World(broker)


def fetched(topic: str, code: int) -> FetchResponse:
    part = PartitionData(error_code=code)
    return FetchResponse(responses=[FetchableTopicResponse(topic, partitions=[part])])


def test_a_secret_in_an_answer_is_found(world: World) -> None:
    world.expect_no_secret(b"asked", b"nothing of it")
    with pytest.raises(FindingError, match=RECORD):
        world.expect_no_secret(TOPIC.encode(), f"{TOPIC} has {RECORD}".encode())
    with pytest.raises(FindingError, match="secret-group"):
        world.expect_no_secret(b"asked", GROUP.encode())


def test_what_a_client_said_itself_is_no_secret(world: World) -> None:
    world.expect_no_secret(TOPIC.encode(), TOPIC.encode())


def test_a_part_about_a_secret_without_an_error_is_found() -> None:
    assert errors_of(fetched(TOPIC, 0)) == [("", 0)]
    assert errors_of(fetched(TOPIC, Error.TOPIC_AUTHORIZATION_FAILED)) == [("", 29)]
    assert errors_of(fetched("another", 0)) == []
    group = DescribeGroupsResponse(groups=[DescribedGroup(error_code=0, group_id=GROUP)])
    assert (GROUP, 0) in errors_of(group)


def test_requests_aim_at_what_is_secret(world: World) -> None:
    random, api = Random(1), APIS[API_KEYS["Metadata"]]
    frames = [world.aimed(random, api) for _ in range(300)]
    assert any(TOPIC.encode() in frame for frame in frames)
    assert any(world.broker.topic_id in frame for frame in frames)


def test_a_log_that_a_client_wrote_into_is_found() -> None:
    line = 'time=2026-11-30T05:33:36.925Z level=info broker=1 room=broker event="closed"'
    judge_log(f"{line}\n{line}\n")
    with pytest.raises(FindingError, match="a line of the log that is none"):
        judge_log(f"{line}\nUser:admin logged in\n")
    with pytest.raises(FindingError, match="a handler failed"):
        judge_log(f"{line} cause id 7\n")


def test_certificates_are_of_the_authority_or_of_another_one(world: World) -> None:
    random = Random(3)
    kinds = {world.certificate(random)[1] for _ in range(12)}
    assert kinds == {True, False}


@pytest.mark.integration
def test_a_real_broker_withstands_some_rounds(tmp_path: Path) -> None:
    with secure_broker(tmp_path) as broker:
        target = HostileTarget(broker)
        random = Random(20_261_130)
        for _ in range(ROUNDS):
            target.round(random)
        assert "attacks of" in target.finish()
