"""Several leaders copy at once within one budget for the bytes of all moves.

Source: docs/decisions/0010-the-balancer.md ("Budget")."""

from collections.abc import Iterator

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.cluster_world import ClusterWorld, joined
from tests.controller.controller_world import changes

from strandline.base.network import Lane
from strandline.controller.commands import (
    AlterConfigs,
    AlterReassignments,
    CreateTopics,
    NewTopic,
    PartitionResults,
    ResourceResults,
    TopicResults,
    WantedReplicas,
)
from strandline.controller.placing.copy_shares import HELD_MS
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.replication.wire import APPENDS
from strandline.simulation.world.scheduler import US_PER_MS

REGIONS = {1: "east", 2: "east", 3: "east", 4: "west", 5: "west"}
LEADERS = (1, 2, 3)
KIB = 1 << 10
LOG_BYTES = 3_000 * KIB
BATCH_BYTES = 4 * KIB
RAMP_MS = 2 * HELD_MS
"""Until who copies has its share."""


class Meter:
    """Counts the batches' bytes that cross regions: a network's tap."""

    def __init__(self, world: ClusterWorld) -> None:
        self._scheduler = world.scheduler
        self.sent: list[tuple[int, BrokerId, int]] = []
        """(ms, from, bytes)"""

    def on_sent(
        self, sender: BrokerId, peer: BrokerId, lane: Lane, *, connection: int, data: bytes
    ) -> None:
        """A message was given to a connection."""
        if data[0] in APPENDS and REGIONS[sender] != REGIONS[peer]:
            self.sent.append((self._scheduler.now_us // US_PER_MS, sender, len(data)))

    def on_delivered(self, sender: BrokerId, receiver: BrokerId, lane: Lane, data: bytes) -> None:
        """Counted before."""

    def on_way_changed(self, here: BrokerId, peer: BrokerId) -> None:
        """No matter."""

    def total(self, begin_ms: int, end_ms: int, *senders: int) -> int:
        """The bytes within a time, of these brokers or of all."""
        return sum(
            size
            for at, sender, size in self.sent
            if begin_ms <= at < end_ms and (not senders or sender in senders)
        )

    def most_in_a_second(self, begin_ms: int = 0) -> int:
        """The most bytes that any second saw."""
        times = {at for at, *_ in self.sent if at >= begin_ms}
        return max((self.total(at, at + 1_000) for at in times), default=0)

    def senders(self, begin_ms: int, end_ms: int) -> set[int]:
        """Who sent a batch within a time."""
        return {sender for at, sender, size in self.sent if begin_ms <= at < end_ms and size > KIB}


class CopyWorld(ClusterWorld):
    """Three brokers of the east lead a full partition each, without a replica in the west."""

    def __init__(self) -> None:
        super().__init__(REGIONS, regions=REGIONS)
        self.until_started()
        for leader in LEADERS:
            others = [one for one in LEADERS if one != leader]
            placed = ((0, (BrokerId(leader), *map(BrokerId, others))),)
            answer = self.submit(CreateTopics((NewTopic(name=f"t{leader}", assignments=placed),)))
            assert isinstance(answer, TopicResults) and not answer.topics[0].error_code, answer
        for leader in LEADERS:
            self.until(lambda leader=leader: self.leader_of(f"t{leader}") == leader)  # type: ignore[misc]
            self.fill(leader, LOG_BYTES)
        self.advance(10_000)  # The tails in memory are the logs' ends: the rest is read.
        self.meter = self.fabric.recorder = Meter(self)

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_us // US_PER_MS

    def fill(self, leader: int, size_bytes: int) -> None:
        """Write so much to the topic that this broker leads."""
        for _ in range(size_bytes // BATCH_BYTES):
            now = self.broker(leader).services.clock.wall_ms()
            data = PartitionProduceData(records=batch_of(bytes(BATCH_BYTES), timestamp=now))
            topic = TopicProduceData(name=f"t{leader}", partition_data=[data])
            request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
            answer = self.ask(leader, request, ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0

    def set(self, broker: str = "", /, **values: str) -> None:
        """Change the cluster's configuration, or that of a broker."""
        rows = [(name.replace("_", "."), 0, value) for name, value in values.items()]
        answer = self.submit(AlterConfigs((changes(4, broker, *rows),)))
        assert isinstance(answer, ResourceResults) and not answer.resources[0].error_code, answer

    def move(self, leader: int, *replicas: int) -> None:
        """Ask for other replicas of the topic that this broker leads."""
        wanted = WantedReplicas(
            topic=f"t{leader}", index=0, replicas=tuple(map(BrokerId, replicas))
        )
        answer = self.submit(AlterReassignments((wanted,)))
        assert isinstance(answer, PartitionResults) and not answer.partitions[0].error_code

    def move_all(self) -> None:
        """Each of the topics gets a replica in the west."""
        for leader, new in zip(LEADERS, (4, 5, 4), strict=True):
            other = leader % len(LEADERS) + 1
            self.move(leader, leader, other, new)

    @property
    def is_moving(self) -> bool:
        return bool(self.broker(1).controller.cluster.moving)


@pytest.fixture
def world() -> Iterator[CopyWorld]:
    """The brokers, the full partitions, and what crosses regions."""
    with joined(CopyWorld()) as made:
        assert isinstance(made, CopyWorld)
        yield made


def test_what_crosses_regions_is_within_the_budget_in_any_second(world: CopyWorld) -> None:
    budget = 300 * KIB
    world.set(moves_cross_region_bytes_per_s=str(budget))
    world.advance(HELD_MS)
    begin = world.now_ms
    world.move_all()
    world.advance(20_000)
    assert world.is_moving
    assert world.meter.most_in_a_second() <= 1.1 * budget
    busy = begin + RAMP_MS, begin + 20_000
    assert world.meter.senders(*busy) == {1, 2, 3}
    assert world.meter.total(*busy) >= 0.9 * budget * (busy[1] - busy[0]) / 1_000
    world.until(lambda: not world.is_moving)
    assert world.meter.most_in_a_second() <= 1.1 * budget


def test_a_budget_for_all_that_is_changed_holds_for_copies_under_way(world: CopyWorld) -> None:
    world.set(moves_bytes_per_s=str(200 * KIB))
    world.move_all()
    world.advance(RAMP_MS + 2_000)
    assert world.meter.most_in_a_second() <= 220 * KIB
    world.set(moves_bytes_per_s="0")
    halted = world.now_ms + 500
    world.advance(10_000)
    assert world.meter.senders(halted, world.now_ms) == set()
    world.set(moves_bytes_per_s=str(400 * KIB))
    begin = world.now_ms
    world.advance(RAMP_MS + 4_000)
    assert world.meter.total(world.now_ms - 4_000, world.now_ms) >= 0.85 * 4 * 400 * KIB
    assert world.meter.most_in_a_second(begin) <= 440 * KIB
    world.set(moves_bytes_per_s="-1")
    world.advance(5_000)
    assert not world.is_moving


def test_who_ends_leaves_its_share_to_the_others(world: CopyWorld) -> None:
    budget = 300 * KIB
    world.set(moves_bytes_per_s=str(budget))
    world.move_all()
    world.advance(RAMP_MS + 1_000)
    world.move(2, 1, 2, 3)
    world.move(3, 1, 2, 3)
    world.advance(RAMP_MS)
    begin = world.now_ms
    world.advance(2_000)
    assert world.meter.senders(begin, world.now_ms) == {1}
    assert world.meter.total(begin, world.now_ms) >= 0.9 * 2 * budget


def test_a_controller_that_dies_lets_nobody_copy_more_than_the_budget(world: CopyWorld) -> None:
    budget = 200 * KIB
    world.set(moves_bytes_per_s=str(budget))
    world.move_all()
    world.advance(RAMP_MS)
    leader = next(one for one in LEADERS if world.controller(one).is_serving)
    world.hosts[leader].kill()
    world.advance(15_000)
    begin = world.now_ms
    world.advance(4_000)
    assert world.meter.most_in_a_second() <= 1.1 * budget
    assert world.meter.total(begin, world.now_ms) >= 0.85 * 4 * budget


def test_what_brokers_may_send_and_take_is_set_by_kafkas_names(world: CopyWorld) -> None:
    """Brokers 1 and 3 copy to 4, broker 2 to 5."""
    world.set("2", leader_replication_throttled_rate=str(100 * KIB))
    world.set("4", follower_replication_throttled_rate=str(160 * KIB))
    world.move_all()
    world.advance(RAMP_MS)
    begin = world.now_ms
    world.advance(4_000)
    rates = {one: world.meter.total(begin, world.now_ms, one) // 4 for one in LEADERS}
    assert 90 * KIB <= rates[2] <= 110 * KIB
    assert 70 * KIB <= rates[1] <= 88 * KIB and 70 * KIB <= rates[3] <= 88 * KIB
    world.set(follower_replication_throttled_rate=str(50 * KIB))  # Of each that has none.
    world.advance(RAMP_MS)
    begin = world.now_ms
    world.advance(4_000)
    rates = {one: world.meter.total(begin, world.now_ms, one) // 4 for one in LEADERS}
    assert 40 * KIB <= rates[2] <= 55 * KIB
    assert 70 * KIB <= rates[1] <= 88 * KIB


def test_the_rates_in_force_are_told(world: CopyWorld) -> None:
    world.set(moves_bytes_per_s=str(300 * KIB))
    world.set("4", follower_replication_throttled_rate=str(1_000 * KIB))
    world.move_all()
    world.advance(RAMP_MS + 2_000)
    at = next(one for one in LEADERS if world.controller(one).can_serve_reads)
    balance = world.ask(at, DescribeBalanceRequest(), DescribeBalanceResponse, 1)
    shown = {
        one.name: (one.bytes_per_s, {share.broker_id: share.bytes_per_s for share in one.shares})
        for one in balance.rates
    }
    third = 300 * KIB * 333_333 // 1_000_000
    assert shown == {
        "all": (300 * KIB, dict.fromkeys(LEADERS, third)),
        "to broker 4": (1_000 * KIB, dict.fromkeys((1, 3), 500 * KIB)),
    }


def test_producers_and_who_returns_are_not_held_up_by_a_budget_of_nothing(
    world: CopyWorld,
) -> None:
    world.set(moves_bytes_per_s="0")
    world.move_all()
    world.advance(2_000)
    world.fill(1, 200 * KIB)
    world.lose_power_of(3, for_ms=3_000)
    world.advance(5_000)
    held = world.replicas_of("t1")
    assert held[3].log_end_offset == held[1].log_end_offset
    assert world.is_moving
    assert held[4].log_end_offset < held[1].log_end_offset // 10
    at = next(one for one in LEADERS if world.controller(one).can_serve_reads)
    balance = world.ask(at, DescribeBalanceRequest(), DescribeBalanceResponse, 1)
    assert ("copies-halted", "copies are halted (moves.bytes.per.s=0)", len(LEADERS)) in [
        (one.code, one.text, one.partition_count) for one in balance.waits
    ]


def test_a_copy_is_not_hurried_because_replicas_that_count_are_away(world: CopyWorld) -> None:
    """A broker that is no replica yet counts for no quorum."""
    budget = 300 * KIB
    world.set(moves_cross_region_bytes_per_s=str(budget))
    world.move_all()
    world.advance(RAMP_MS)
    for one in (2, 3):
        world.hosts[one].kill()
    world.advance(3_000)
    assert world.meter.most_in_a_second() <= 1.1 * budget
