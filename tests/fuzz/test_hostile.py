"""The looks of the hostile target find what they are for, and a short real run finds nothing."""

import time
from pathlib import Path
from random import Random

import pytest
from fuzz.access_targets import RULES
from fuzz.hostile.cluster import GROUP, RECORD, TOPIC, Ports, SecureBroker, secure_broker
from fuzz.hostile.http_port import judge_strangers
from fuzz.hostile.provider import Provider
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
from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.token_keys import read_key_set
from strandline.security.sasl.tokens import verify

ROUNDS = 2


@pytest.fixture
def world(tmp_path: Path) -> World:
    broker = SecureBroker(
        tmp_path, Ports(1, 2, 3, 4, 5, 6), 1, Authority(tmp_path), b"\x07" * 16,
        Provider(tmp_path), "sl_token",
    )  # fmt: skip
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


PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 100


@pytest.mark.parametrize(
    ("got", "what"),
    [
        (PAGE, "a page without a right"),
        (b"HTTP/1.1 200 OK\r\n\r\nok\n", "a response without a length"),
        (b"\x00\x00\x00\x04oops", "no response of HTTP"),
        (b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "the status 500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n" + PAGE, "bytes of a body of 3"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 12\r\n\r\n" + TOPIC.encode(), TOPIC),
    ],
)
def test_what_no_stranger_may_get_of_the_http_port_is_found(
    world: World, got: bytes, what: str
) -> None:
    with pytest.raises(FindingError, match=what):
        judge_strangers(world, b"GET /healthz", got)


def test_a_refusal_and_health_are_what_a_stranger_may_get(world: World) -> None:
    refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"
    assert judge_strangers(world, b"GET /", refused) == 401
    healthy = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
    assert judge_strangers(world, b"GET /healthz", healthy) == 200
    assert judge_strangers(world, b"GET /healthz", b"") is None


def test_only_a_right_token_of_the_provider_holds(world: World) -> None:
    """As the broker judges it."""
    provider, random = world.broker.provider, Random(5)
    keys = read_key_set(provider.file.read_bytes())
    now_ms = int(time.time() * 1000)
    assert verify(provider.token("mia"), keys, RULES, now_ms=now_ms).user == "mia"
    wrong = {provider.wrong_token(random, "admin") for _ in range(200)}
    assert len(wrong) > 20
    for one in wrong:
        with pytest.raises(SaslError):
            verify(one, keys, RULES, now_ms=now_ms)


@pytest.mark.integration
def test_a_real_broker_withstands_some_rounds(tmp_path: Path) -> None:
    with secure_broker(tmp_path) as broker:
        target = HostileTarget(broker)
        random = Random(20_261_130)
        for _ in range(ROUNDS):
            target.round(random)
        assert "attacks of" in target.finish()
