"""Bytes that cross regions on a client's behalf have a quota: what counts, and what does not.

Source: decision 0070 ("Bytes across regions")."""

from dataclasses import replace

import pytest
from tests.broker.broker_world import OTHER, BrokerWorld, Pending, batch_of
from tests.broker.test_fetch_handler import fetch
from tests.broker.test_produce_handler import produce

from strandline.model.cluster import Address, Broker, Labels
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.messages.fetch import FetchResponse
from strandline.protocol.messages.produce import ProduceResponse
from strandline.security.quotas.keys import REMOTE_REGION_BYTE_RATE
from strandline.security.quotas.windows import Usage

NORTH = BrokerId(3)
RECORD = bytes(9_800)
"""The broker is in the east; its clients come from 10.1.2.3."""


_spent: list[float] = []
"""What has counted for the one quota that there is."""


@pytest.fixture
def limited(world: BrokerWorld, monkeypatch: pytest.MonkeyPatch) -> BrokerWorld:
    """A topic with a replica in the east and one in the west, and a quota of 1 KB/s."""
    note = Usage.note
    _spent.clear()

    def noted(usage: Usage, amount: float, now_ms: int) -> None:
        _spent.append(amount)
        note(usage, amount, now_ms)

    monkeypatch.setattr(Usage, "note", noted)
    world.add_topic("t")
    access = world.cluster.access
    access.quotas[(("client-id", "tester"),)] = {REMOTE_REGION_BYTE_RATE: 1_000}
    access.version += 1
    return world


def add_north(world: BrokerWorld, name: str = "t") -> None:
    """One more replica, in a third region."""
    world.cluster.brokers[NORTH] = Broker(
        id=NORTH,
        incarnation="x",
        rpc=Address("127.0.0.1", 33_003),
        kafka=Address("host-3", 9_003),
        labels=Labels(region="north"),
    )
    partitions = world.cluster.topics[name].partitions
    partitions[0] = replace(partitions[0], replicas=(*partitions[0].replicas, NORTH))


def move(world: BrokerWorld, broker: BrokerId, region: str) -> None:
    known = world.cluster.brokers[broker]
    world.cluster.brokers[broker] = Broker(
        id=broker,
        incarnation=known.incarnation,
        rpc=known.rpc,
        kafka=known.kafka,
        labels=Labels(region=region),
    )


def sent(world: BrokerWorld) -> Pending:
    return world.send(produce(batch_of(RECORD), acks=1), 9)


def throttled(pending: Pending) -> int:
    told_ms = pending.answer(ProduceResponse).throttle_time_ms
    assert pending.sink.muted_ms[-1:] == ([told_ms] if told_ms else [])
    return told_ms


def test_a_produce_counts_once_for_each_other_region(limited: BrokerWorld) -> None:
    size = len(batch_of(RECORD))
    sent(limited)
    assert sum(_spent) == size
    add_north(limited)
    told_ms = throttled(sent(limited))
    assert sum(_spent) == 3 * size
    assert 19_000 < told_ms < 21_000  # Of 30 KB ten seconds' worth are free.
    assert limited.services.quotas.throttled_count["remote"] == 1


def test_a_second_replica_in_a_region_does_not_count(limited: BrokerWorld) -> None:
    """The leader sends the records to a region once; a relay there passes them on."""
    add_north(limited)
    move(limited, NORTH, "west")
    sent(limited)
    assert sum(_spent) == len(batch_of(RECORD))


def test_replicas_of_the_broker_s_own_region_do_not_count(limited: BrokerWorld) -> None:
    move(limited, OTHER, "east")
    assert throttled(sent(limited)) == 0
    assert sum(_spent) == 0


def test_a_region_that_is_not_known_is_not_another_one(limited: BrokerWorld) -> None:
    move(limited, OTHER, "")
    sent(limited)
    assert sum(_spent) == 0


def test_a_producer_in_another_region_counts_once_more(limited: BrokerWorld) -> None:
    limited.services.writers.set_networks(("west=10.1.0.0/16",))
    sent(limited)
    assert sum(_spent) == 2 * len(batch_of(RECORD))


def test_a_consumer_counts_only_if_it_is_in_another_region(
    limited: BrokerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(limited)
    before = sum(_spent)
    # No replica is nearer to a consumer than this one.
    monkeypatch.setattr("strandline.broker.fetch.fetching.nearer_replica", lambda *_: NO_BROKER)

    def read(rack: str) -> tuple[int, int]:
        """The bytes of records in the answer, and the throttle time."""
        request = fetch(0, max_wait_ms=0)
        request.rack_id = rack
        pending = limited.send(request, 11)
        answer = pending.answer(FetchResponse)
        found = sum(len(one.records or b"") for one in answer.responses[0].partitions)  # type: ignore[arg-type]
        return found, answer.throttle_time_ms

    for rack in ("", "east", "a rack of no broker"):
        assert read(rack) == (len(batch_of(RECORD)), 0)
    assert sum(_spent) == before
    limited.services.writers.set_networks(("east=10.1.0.0/16",))
    assert read("west")[1] == 0  # Its address says where it is, not itself.
    limited.services.writers.set_networks(())
    found, told_ms = read("west")
    assert found > 0 and told_ms > 0
    assert read("east") == (len(batch_of(RECORD)), 0)
    assert limited.services.quotas.throttled_count["remote"] == 1


def test_without_the_quota_no_region_is_looked_up(world: BrokerWorld) -> None:
    world.add_topic("t")
    world.services.writers.region_of = lambda _: pytest.fail("looked up")  # type: ignore[method-assign]
    throttled(sent(world))
    world.send(fetch(0, max_wait_ms=0), 11)
