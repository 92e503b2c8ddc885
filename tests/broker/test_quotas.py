"""Quotas on one broker: what counts, which answers throttle, and what is muted for how long.

Source: KIP-13, KIP-124, KIP-219; Kafka 4.3's KafkaApis and ClientQuotaManager."""

import pytest
from tests.broker.broker_world import BrokerWorld, Pending, Sink, batch_of
from tests.broker.test_fetch_handler import fetch
from tests.broker.test_produce_handler import produce

from strandline.broker.fetch.sessions import FIRST_EPOCH
from strandline.broker.quotas import client_quotas
from strandline.model.access import QuotaEntity
from strandline.protocol.errors import Error
from strandline.protocol.headers import encode_request
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.fetch import FetchResponse
from strandline.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.protocol.messages.produce import ProduceResponse
from strandline.security.quotas.keys import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from strandline.security.session import Principal, Session

TESTER: QuotaEntity = (("client-id", "tester"),)
RECORD = bytes(9_800)
S = 1_000_000_000


def limit(world: BrokerWorld, entity: QuotaEntity = TESTER, **quotas: float) -> None:
    access = world.cluster.access
    access.quotas[entity] = dict(quotas)
    access.version += 1


def sent(world: BrokerWorld, *, user: str = "ANONYMOUS", acks: int = 1) -> Pending:
    sink = Sink()
    sink.session = Session(principal=Principal.user(user))
    return world.send(produce(batch_of(RECORD), acks=acks), 9, sink=sink)


def throttled(pending: Pending) -> tuple[int, list[int]]:
    """What a produce's answer tells, and what its connection was muted for."""
    return pending.answer(ProduceResponse).throttle_time_ms, pending.sink.muted_ms


class Stopwatch:
    """A clock of nanoseconds: the loop works for `step_ns` between two looks."""

    def __init__(self, step_ns: int) -> None:
        self.at_ns = 0
        self.step_ns = step_ns

    def __call__(self) -> int:
        self.at_ns += self.step_ns
        return self.at_ns


def test_without_quotas_nothing_is_looked_up(world: BrokerWorld) -> None:
    world.add_topic("t")
    pending = sent(world)
    assert throttled(pending) == (0, [])
    assert pending.context.limits is None


def test_a_producer_over_its_quota_is_answered_at_once_and_muted(world: BrokerWorld) -> None:
    world.add_topic("t")
    limit(world, **{PRODUCER_BYTE_RATE: 1_000})
    assert throttled(sent(world)) == (0, [])
    told_ms, muted_ms = throttled(sent(world))
    assert 9_500 <= told_ms <= 10_000
    assert muted_ms == [told_ms]
    quotas = world.services.quotas
    assert (quotas.throttled_count["produce"], quotas.throttled_ms["produce"]) == (1, told_ms)


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_tells_the_throttle_time(world: BrokerWorld, version: int) -> None:
    world.add_topic("t")
    limit(world, **{PRODUCER_BYTE_RATE: 100})
    pending = world.send(produce(batch_of(RECORD), acks=1), version)
    answer = pending.answer(ProduceResponse)
    assert answer.throttle_time_ms == pending.sink.muted_ms[0] > 0
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_records_without_an_answer_count_too(world: BrokerWorld) -> None:
    world.add_topic("t")
    limit(world, **{PRODUCER_BYTE_RATE: 100})
    assert sent(world, acks=0).sink.muted_ms == [60_000]


def test_clients_of_one_quota_share_it_and_others_have_their_own(world: BrokerWorld) -> None:
    world.add_topic("t")
    limit(world, (("user", None),), **{PRODUCER_BYTE_RATE: 1_000})
    sent(world, user="a")
    assert throttled(sent(world, user="a"))[0] >= 9_500
    assert throttled(sent(world, user="b")) == (0, [])


def test_a_larger_quota_counts_at_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    limit(world, **{PRODUCER_BYTE_RATE: 1_000})
    sent(world)
    sent(world)
    limit(world, **{PRODUCER_BYTE_RATE: 100_000})
    assert throttled(sent(world)) == (0, [])
    world.cluster.access.quotas.clear()
    world.cluster.access.version += 1
    assert sent(world).context.limits is None


# ---- fetches -------------------------------------------------------------------------------------


def test_a_consumer_over_its_quota_gets_no_records_until_it_has_waited(world: BrokerWorld) -> None:
    world.add_topic("t")
    for _ in range(20):
        sent(world)
    limit(world, **{CONSUMER_BYTE_RATE: 10_000})
    received, told_ms = 0, 0
    for _ in range(20):
        pending = world.send(fetch(0), 11)
        answer = pending.answer(FetchResponse)
        if answer.throttle_time_ms:
            assert pending.sink.muted_ms == [answer.throttle_time_ms]
        if not answer.responses:
            break
        received += len(answer.responses[0].partitions[0].records or b"")
    assert answer.throttle_time_ms > 0
    # A window's worth, and one second's or one batch.
    assert received <= 10_000 * 11 + 20_500
    told_ms = answer.throttle_time_ms
    world.advance(told_ms - 1)
    assert world.send(fetch(0), 11).answer(FetchResponse).responses == []
    world.advance(1)
    assert world.send(fetch(0), 11).answer(FetchResponse).responses


def test_an_answer_has_no_more_than_the_quota_leaves_but_one_batch(world: BrokerWorld) -> None:
    world.add_topic("t")
    for _ in range(9):
        sent(world)
    limit(world, **{CONSUMER_BYTE_RATE: 3_000})
    (topic,) = world.send(fetch(0), 11).answer(FetchResponse).responses
    assert 20_000 < len(topic.partitions[0].records or b"") <= 30_000
    world.services.quotas = client_quotas.ClientQuotas(world.cluster, world.clock)
    limit(world, **{CONSUMER_BYTE_RATE: 10})
    answer = world.send(fetch(0), 11).answer(FetchResponse)
    assert 9_800 < len(answer.responses[0].partitions[0].records or b"") < 20_000
    assert answer.throttle_time_ms == 60_000


def test_a_throttled_request_opens_no_session_and_goes_on_with_one(world: BrokerWorld) -> None:
    world.add_topic("t")
    sent(world)
    limit(world, **{CONSUMER_BYTE_RATE: 1_000})
    opening = fetch(0)
    opening.session_epoch = FIRST_EPOCH
    opened = world.send(opening, 11).answer(FetchResponse)
    assert opened.session_id
    assert opened.throttle_time_ms == 0
    world.services.quotas.limits_of("ANONYMOUS", "tester").fetch.note(  # type: ignore[union-attr]
        20_000, world.clock.monotonic_ms()
    )
    again = fetch()
    again.session_id, again.session_epoch = opened.session_id, FIRST_EPOCH + 1
    answer = world.send(again, 11).answer(FetchResponse)
    assert (answer.error_code, answer.session_id, answer.responses) == (0, opened.session_id, [])
    assert answer.throttle_time_ms > 0
    again.session_epoch += 1
    assert world.send(again, 11).answer(FetchResponse).session_id == opened.session_id
    opening.session_id = opened.session_id
    refused = world.send(opening, 11).answer(FetchResponse)
    assert (refused.error_code, refused.session_id, refused.responses) == (0, 0, [])
    again.session_epoch += 1
    gone = world.send(again, 11).answer(FetchResponse)
    assert gone.error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_that_waited_counts_what_it_found(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    limit(world, **{CONSUMER_BYTE_RATE: 100})
    pending = world.send(fetch(0, max_wait_ms=5_000), 11)
    assert not pending.context.is_answered
    sent(world)
    world.run(replica.commit)
    assert pending.answer(FetchResponse).throttle_time_ms == 60_000
    assert pending.sink.muted_ms == [60_000]


# ---- the time of the loop ------------------------------------------------------------------------


def test_the_loops_time_throttles_for_one_second_at_most(world: BrokerWorld) -> None:
    world.services.quotas.now_ns = Stopwatch(S)
    limit(world, **{REQUEST_PERCENTAGE: 1.0})
    pending = world.send(MetadataRequest(topics=[]), 9)
    world.advance(0)
    assert pending.answer(MetadataResponse).throttle_time_ms == 1_000
    assert pending.sink.muted_ms == [1_000]
    for request, answer, version in (
        (ApiVersionsRequest("a", "1"), ApiVersionsResponse, 3),
        (ListOffsetsRequest(), ListOffsetsResponse, 5),
        (MetadataRequest(topics=[]), MetadataResponse, 4),
    ):
        assert world.ask(request, answer, version).throttle_time_ms == 1_000
    assert world.services.quotas.throttled_count["request"] == 4


def test_a_version_without_a_throttle_time_is_answered_all_the_same(world: BrokerWorld) -> None:
    world.services.quotas.now_ns = Stopwatch(S)
    limit(world, **{REQUEST_PERCENTAGE: 1.0})
    for _ in range(2):
        pending = world.send(ApiVersionsRequest(), 0)
        assert pending.answer(ApiVersionsResponse).throttle_time_ms == 0
    assert pending.sink.muted_ms == [1_000]


def test_only_the_steps_of_a_handler_count_and_not_its_waits(world: BrokerWorld) -> None:
    clock = Stopwatch(S // 1_000)
    world.services.quotas.now_ns = clock
    limit(world, **{REQUEST_PERCENTAGE: 100.0})
    world.send(MetadataRequest(topics=[]), 9)
    limits = world.services.quotas.limits_of("ANONYMOUS", "tester")
    assert limits is not None
    assert limits.request is not None
    world.advance(5_000)
    # Looks of a millisecond each, in percent seconds.
    assert 1_000 - limits.request.room(world.clock.monotonic_ms()) / 100 * 100 <= 2


def test_logins_have_no_quota(world: BrokerWorld) -> None:
    limit(world, **{REQUEST_PERCENTAGE: 0.001})
    sink = Sink()
    sink.session = Session(is_authenticated=False)
    pending = world.send(ApiVersionsRequest("a", "1"), 3, sink=sink)
    assert pending.context.limits is None


# ---- bounds --------------------------------------------------------------------------------------


def test_long_client_ids_take_no_more_memory_than_names_of_quotas(world: BrokerWorld) -> None:
    limit(world, (("client-id", None),), **{PRODUCER_BYTE_RATE: 1})
    quotas = world.services.quotas
    long = "c" * 32_000
    request = MetadataRequest(topics=[])
    world.send_frame(encode_request(request, 9, correlation_id=1, client_id=long))
    ((_, client_id),) = quotas._clients
    ((_, (_, sharer)),) = quotas._usages
    assert client_id == sharer == "c" * 1_025


def test_what_is_used_is_kept_within_a_bound(
    world: BrokerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_quotas, "USAGES_MAX", 8)
    monkeypatch.setattr(client_quotas, "CLIENTS_MAX", 8)
    limit(world, (("client-id", None),), **{PRODUCER_BYTE_RATE: 1})
    quotas = world.services.quotas
    for number in range(100):
        found = quotas.limits_of("u", f"client-{number}")
        assert found is not None
        assert found.produce is not None
        found.produce.note(1_000, world.clock.monotonic_ms())
        world.advance(1)
        assert len(quotas._usages) <= 8
        assert len(quotas._clients) <= 8
    kept = quotas.limits_of("u", "client-99")
    assert kept is not None
    assert kept.produce is not None
    assert kept.produce.throttle_ms(world.clock.monotonic_ms()) > 0
