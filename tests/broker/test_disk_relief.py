"""Replicas move away from a disk that fills, by the sizes that brokers report.

Source: docs/decisions/0010-the-balancer.md, "Room"."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import joined
from tests.broker.test_copy_budget import CopyWorld

from strandline.broker.operations.balancing import Findings
from strandline.controller.commands import AlterReassignments, PartitionResults, WantedReplicas
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)

DISK_BYTES = 20_000_000
LOOKS_MS = 45_000
"""Until a disk is known to be full, and has been for more than a moment."""


class DiskWorld(CopyWorld):
    """Three logs of three megabytes, each on brokers 1, 2 and 3; brokers 4 and 5 hold nothing."""

    def __init__(self) -> None:
        super().__init__()
        for host in self.hosts.values():
            host.disk.capacity_bytes = DISK_BYTES

    def fill(self, broker: int, size_bytes: int) -> None:
        """Somebody else takes so much of its disk; before that: write so much to a topic."""
        disk = self.hosts[broker].disk
        if disk.capacity_bytes != DISK_BYTES:
            super().fill(broker, size_bytes)
        else:
            disk.faults.foreign_bytes = size_bytes

    def used_percent(self, broker: int) -> int:
        disk = self.hosts[broker].disk
        return 100 * (DISK_BYTES - disk.free_bytes()) // DISK_BYTES

    def partition(self, leader: int) -> Partition:
        return self.broker(1).controller.cluster.topics[f"t{leader}"].partitions[0]

    @property
    def moving(self) -> list[Partition]:
        cluster = self.broker(1).controller.cluster
        return [cluster.groups[one] for one in sorted(cluster.moving)]

    def holders(self, broker: int) -> int:
        return sum(BrokerId(broker) in self.partition(one).replicas for one in (1, 2, 3))

    def active(self) -> int:
        self.until(lambda: any(self.broker(one).controller.is_active for one in (1, 2, 3)))
        return next(one for one in (1, 2, 3) if self.broker(one).controller.is_active)

    def findings(self) -> Findings:
        found = self.broker(self.active()).services.balancing.findings
        assert found is not None
        return found

    def balance(self, version: int) -> DescribeBalanceResponse:
        request = DescribeBalanceRequest()
        return self.ask(self.active(), request, DescribeBalanceResponse, version)


@pytest.fixture
def world() -> Iterator[DiskWorld]:
    with joined(DiskWorld()) as made:
        assert isinstance(made, DiskWorld)
        yield made


def test_what_goes_is_told_with_its_numbers_and_goes_once(world: DiskWorld) -> None:
    world.set(moves_bytes_per_s="0")  # Copies wait, and so do moves.
    world.fill(3, 8_500_000)
    assert 86 <= world.used_percent(3) <= 92
    world.until(lambda: len(world.moving) == 1)
    (moving,) = world.moving
    assert moving.removing == (3,) and moving.by_balancer
    balance = world.balance(2)
    (move,) = balance.moves
    percent = world.used_percent(3)
    assert (move.code, move.text) == (
        "disk-high",
        f"disk of broker 3 is {percent} % full, 80 is wanted",
    )
    size_bytes = world.replicas_of(moving.topic)[1].log.size_bytes()
    assert 3_000_000 < move.log_bytes <= size_bytes
    assert [(one.text, one.log_bytes) for one in world.balance(1).moves] == [("", -1)]
    world.advance(3 * LOOKS_MS)
    assert world.moving == [moving]
    # Whoever is the controller next has to find out by itself that this is enough.
    leader = world.active()
    world.lose_power_of(leader, for_ms=1_000)
    world.advance(3 * LOOKS_MS)
    assert [one.group for one in world.moving] == [moving.group]
    world.set(moves_bytes_per_s="-1")
    world.until(lambda: not world.moving)
    world.until(lambda: world.used_percent(3) < 80)
    world.advance(2 * LOOKS_MS)
    assert world.holders(3) == 2 and not world.moving
    assert not world.findings().condition.full


def test_where_nobody_has_room_that_is_said_until_somebody_has(world: DiskWorld) -> None:
    for broker in (1, 2, 4, 5):
        world.fill(broker, DISK_BYTES * (80 if broker > 2 else 35) // 100)
    world.fill(3, 8_500_000)
    world.advance(LOOKS_MS)
    assert all(80 < world.used_percent(broker) < 85 for broker in (1, 2))
    percent = world.used_percent(3)
    (waits,) = [
        (text, one.count)
        for (code, text), one in world.findings().waits.found.items()
        if code == "disk-high"
    ]
    head = f"disk of broker 3 is {percent} % full, 80 is wanted"
    assert waits == (
        f"{head}; no other broker has a disk below 80 % that may be given replicas",
        3,
    )
    world.fill(4, DISK_BYTES * 70 // 100)
    world.advance(LOOKS_MS)
    found = world.findings().waits.found
    assert any(f"{head}; needs a broker with 3." in text for _, text in found)
    world.fill(5, 0)
    world.until(lambda: world.holders(5) == 1)
    world.until(lambda: world.used_percent(3) < 80)


def test_what_somebody_has_just_moved_stays_for_a_while(world: DiskWorld) -> None:
    world.set(broker_lost_after_ms="120000")
    world.fill(4, 14_000_000)
    wanted = WantedReplicas(topic="t1", index=0, replicas=tuple(map(BrokerId, (1, 2, 4))))
    answer = world.submit(AlterReassignments((wanted,)))
    assert isinstance(answer, PartitionResults) and not answer.partitions[0].error_code
    world.until(lambda: world.partition(1).replicas == (1, 2, 4))
    assert world.used_percent(4) > 85
    world.advance(LOOKS_MS)
    assert world.partition(1).replicas == (1, 2, 4) and not world.moving
    assert any(code == "by-hand" for code, _ in world.findings().waits.found)
    world.advance(120_000)
    world.until(lambda: 4 not in world.partition(1).hosts)
