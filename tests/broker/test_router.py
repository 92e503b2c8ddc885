"""The router judges every frame; an error in a handler does not leave it.

Source: kafka-protocol reference 8.4 and 8.6; reliability reference 4."""

import logging
import random
import struct

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.base.errors import ApiError, ProtocolError
from strandline.broker.context import RequestContext
from strandline.broker.handler_kinds import Cold, Handler, Hot
from strandline.broker.handler_table import HANDLERS
from strandline.broker.server.router import Router
from strandline.protocol.apis import APIS
from strandline.protocol.codec import encode
from strandline.protocol.errors import Error
from strandline.protocol.headers import RequestHeader, encode_request_header
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from strandline.protocol.table import Message

CORRELATION = 77


def header(key: int, version: int, client: str | None = "tester") -> bytes:
    api = APIS.get(key)
    flexible = api is not None and api.is_flexible(version)
    return encode_request_header(
        RequestHeader(key, version, CORRELATION, client), flexible=flexible
    )


@pytest.mark.parametrize("version", range(6))
def test_what_is_advertised_is_exactly_what_is_served(world: BrokerWorld, version: int) -> None:
    answer = world.ask(ApiVersionsRequest("tester", "1"), ApiVersionsResponse, version)
    assert answer.error_code == 0
    rows = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    # Kafka's clients ask in later versions, and some fail on a key that they do not know.
    assert sorted(rows) == [key for key in sorted(HANDLERS) if key < 20_000 or version == 0]
    assert rows[0] == (0, 13)
    assert rows[22] == (0, 5)
    for key, (first, last) in rows.items():
        assert first == APIS[key].advertised_min
        assert last <= APIS[key].max_version


@pytest.mark.parametrize(
    ("cluster", "node", "code"),
    [
        (None, -1, 0),
        (None, 9, 0),
        ("cluster-1", 1, 0),
        ("cluster-1", 2, Error.REBOOTSTRAP_REQUIRED),
        ("another", 1, Error.REBOOTSTRAP_REQUIRED),
    ],
)
def test_a_client_that_means_another_broker_is_told_to_begin_again(
    world: BrokerWorld, cluster: str | None, node: int, code: int
) -> None:
    request = ApiVersionsRequest("tester", "1", cluster_id=cluster, node_id=node)
    answer = world.ask(request, ApiVersionsResponse, 5)
    assert answer.error_code == code
    assert bool(answer.api_keys) == (code == 0)


@pytest.mark.parametrize(
    ("name", "release"), [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1\n"), ("é", "1")]
)
def test_software_that_does_not_say_its_name_in_a_word_is_refused(
    world: BrokerWorld, name: str, release: str
) -> None:
    request = ApiVersionsRequest(name, release)
    for version in range(6):
        answer = world.ask(request, ApiVersionsResponse, version)
        assert answer.error_code == (Error.INVALID_REQUEST if version >= 3 else 0)
        assert bool(answer.api_keys) == (version < 3)
    fine = world.ask(ApiVersionsRequest("a-b.c", "1.0.0-rc1"), ApiVersionsResponse, 3)
    assert fine.error_code == 0


@pytest.mark.parametrize("version", [6, 99, 32_767, -1])
def test_an_unknown_version_of_api_versions_is_told_what_to_try(
    world: BrokerWorld, version: int
) -> None:
    frame = struct.pack(">hhih", 18, version, CORRELATION, -1) + b"\x05garbage"
    answer = world.send_frame(frame).answer_bytes()
    assert answer == struct.pack(">ihihhh", CORRELATION, 35, 1, 18, 0, 5)


@pytest.mark.parametrize(
    ("key", "version"), [(999, 0), (-1, 0), (0, 2), (1, 3), (3, 99), (22, 6), (4, 0), (17, 0)]
)
def test_unknown_apis_and_versions_close(world: BrokerWorld, key: int, version: int) -> None:
    with pytest.raises(ProtocolError, match="is not offered here"):
        world.send_frame(header(key, version) + bytes(100))


def test_header_and_body_must_be_whole(world: BrokerWorld) -> None:
    for frame in (bytes(8), header(3, 9)[:-3], header(3, 9), header(18, 3) + b"\x7f"):
        with pytest.raises(ProtocolError):
            world.send_frame(frame)


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_garbage_bodies_close_and_nothing_else(world: BrokerWorld, key: int) -> None:
    rng = random.Random(key)
    api = APIS[key]
    whole = encode(api.request(), api.served_min)
    for _ in range(300):
        version = rng.randint(api.served_min, world.services.offered_apis[key][1])
        body = bytearray(encode(api.request(), version)) + rng.randbytes(rng.randint(0, 40))
        for _ in range(rng.randint(1, 6)):
            if body:
                body[rng.randrange(len(body))] = rng.randrange(256)
        try:
            world.send_frame(header(key, version) + bytes(body))
        except ProtocolError:
            pass
        world.advance(0)
    assert whole is not None


def test_counts_larger_than_the_frame_are_refused_before_memory_is_taken(
    world: BrokerWorld,
) -> None:
    metadata = header(3, 1) + struct.pack(">i", 2**31 - 1)
    produce = header(0, 7) + struct.pack(">hhii", -1, 1, 1_000, 900_000)
    fetch = header(1, 11) + struct.pack(">iiiibiii", -1, 0, 0, 0, 0, 0, 0, 999_999)
    for frame in (metadata, produce, fetch):
        with pytest.raises(ProtocolError):
            world.send_frame(frame)


class TableOf:
    """A router with one handler of the test's own."""

    def __init__(self, world: BrokerWorld, key: int, handler: Handler) -> None:
        world.router = Router(world.services, {**HANDLERS, key: handler})


async def broken(request: Message, context: RequestContext) -> Message:
    raise ZeroDivisionError("a bug")


def test_a_broken_handler_is_logged_with_an_id_that_the_client_sees(
    world: BrokerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    TableOf(world, 60, Cold(broken))
    answer = world.ask(DescribeClusterRequest(), DescribeClusterResponse, 1)
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR
    assert answer.error_message is not None
    assert "cause id 1-1" in answer.error_message
    assert "cause id 1-1" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text


def test_a_broken_handler_without_a_place_for_the_error_closes(
    world: BrokerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    TableOf(world, 23, Cold(broken))
    pending = world.send(OffsetForLeaderEpochRequest(), 4)
    world.advance(0)
    assert not pending.is_answered
    assert len(pending.sink.closed) == 1
    assert "cause id" in pending.sink.closed[0]
    assert caplog.records[-1].levelno == logging.ERROR


def test_an_error_that_a_version_cannot_tell_closes(world: BrokerWorld) -> None:
    TableOf(world, 3, Cold(broken))
    old = world.send(MetadataRequest(), 12)
    new = world.send(MetadataRequest(), 13)
    world.advance(0)
    assert not old.is_answered
    assert len(old.sink.closed) == 1
    assert new.answer(MetadataResponse).error_code == Error.UNKNOWN_SERVER_ERROR


def test_a_broken_hot_handler_is_answered_too(world: BrokerWorld) -> None:
    def start(context: RequestContext) -> None:
        raise KeyError("a bug")

    TableOf(world, 60, Hot(start))
    answer = world.ask(DescribeClusterRequest(), DescribeClusterResponse, 1)
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR


def test_a_refusal_becomes_the_answers_error_code(world: BrokerWorld) -> None:
    async def refuse(request: Message, context: RequestContext) -> Message:
        raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED, "not you")

    TableOf(world, 60, Cold(refuse))
    answer = world.ask(DescribeClusterRequest(), DescribeClusterResponse, 1)
    assert answer.error_code == Error.CLUSTER_AUTHORIZATION_FAILED
    assert answer.error_message == "not you"


def test_a_client_without_an_id_is_served(world: BrokerWorld) -> None:
    frame = header(18, 0, client=None) + encode(ApiVersionsRequest(), 0)
    assert world.send_frame(frame).answer(ApiVersionsResponse).error_code == 0
