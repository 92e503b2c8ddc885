"""This client waits as a broker tells it that is over its quota, and takes it for no failure.

Source: KIP-219."""

from collections.abc import Callable

from tests.client.fake_cluster import HANDLERS, FakeCluster, FakeTransport

from strandline.client.cluster import Client
from strandline.client.consumer import Consumer
from strandline.client.producer import Producer
from strandline.client.wire.connection import THROTTLED_MS_MAX
from strandline.protocol.messages.fetch import FetchResponse
from strandline.protocol.table import Message

TIMEOUT_MS, TOLD_MS = 10_000, 45_000
Handler = Callable[[FakeCluster, int, Message], Message | None]


class Throttling:
    """A cluster whose brokers tell `told_ms` with each answer of an API, and count requests that
    come too early. A fetch that does gets no records."""

    def __init__(self, api: str, told_ms: int = TOLD_MS) -> None:
        self.cluster = FakeCluster()
        self.cluster.add_topic("orders", 1)
        self.transport = FakeTransport(self.cluster)
        self.client = Client(
            self.cluster.bootstrap, timeout_ms=TIMEOUT_MS, transport=self.transport
        )
        self.early = 0
        self.told_ms = told_ms
        self._until_ms = 0
        self._usual = HANDLERS[api]
        self.cluster.extra[api] = self._answer

    def _answer(self, cluster: FakeCluster, broker: int, request: Message) -> Message | None:
        is_early = self.transport.now_ms < self._until_ms
        self.early += is_early
        answer = self._usual(cluster, broker, request)
        if isinstance(answer, FetchResponse) and is_early:
            answer = FetchResponse()
        assert answer is not None
        answer.throttle_time_ms = self.told_ms  # type: ignore[attr-defined]
        self._until_ms = self.transport.now_ms + min(self.told_ms, THROTTLED_MS_MAX)
        return answer


def test_a_producer_waits_longer_than_its_deadline() -> None:
    world = Throttling("Produce")
    producer = Producer(world.client, "orders")
    for number in range(4):
        producer.send(b"%d" % number)
        producer.flush()
    assert world.early == 0
    assert world.transport.now_ms >= 3 * TOLD_MS
    assert producer.acknowledged[0].records_count == 4


def test_a_consumer_waits_longer_than_its_deadline() -> None:
    world = Throttling("Fetch")
    producer = Producer(world.client, "orders")
    consumer = Consumer(world.client, "orders", {0: 0})
    found = []
    for number in range(3):
        producer.send(b"%d" % number)
        producer.flush()
        found += consumer.poll()
    assert [one.value for one in found] == [b"0", b"1", b"2"]
    assert world.early == 0


def test_an_answer_without_any_partition_is_no_error() -> None:
    world = Throttling("Fetch")
    world._until_ms = 1 << 40
    consumer = Consumer(world.client, "orders", {0: 0})
    assert consumer.poll() == []
    assert world.early == 1


def test_no_broker_makes_it_wait_for_ever() -> None:
    world = Throttling("Produce", told_ms=2**31 - 1)
    producer = Producer(world.client, "orders")
    for number in range(2):
        producer.send(b"%d" % number)
        producer.flush()
    assert world.transport.now_ms <= THROTTLED_MS_MAX + TIMEOUT_MS
