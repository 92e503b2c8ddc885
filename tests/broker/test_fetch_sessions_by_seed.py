"""Whatever happens, a client with a session knows what a client without one is told.

Source: KIP-227: a partition that an answer leaves out has no news."""

import random

import pytest
from tests.broker.broker_world import BrokerWorld, ObedientReplica
from tests.broker.test_fetch_sessions import Client

from strandline.protocol.messages.fetch import PartitionData

STEPS = 80
PARTITIONS = 4
Place = tuple[str, int]
Known = tuple[int, int, int]
"""Error, high watermark, log start offset."""


class Walk:
    """A client with a session, and one without, that read the same."""

    def __init__(self, world: BrokerWorld, seed: int, version: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.version = version
        self.replicas: dict[Place, ObedientReplica] = {
            ("t", index): replica for index, replica in enumerate(world.add_topic("t", PARTITIONS))
        }
        self.client = Client(world, version)
        self.reads: dict[Place, int] = {}
        """{partition in the session: offset}"""
        self.known: dict[Place, Known] = {}

    def happen(self) -> None:
        """Something happens to a partition."""
        replica = self.rng.choice(list(self.replicas.values()))
        match self.rng.randrange(4):
            case 0 | 1:
                replica.write(b"value")
            case 2:
                replica.can_serve_reads = not replica.can_serve_reads
            case 3:
                mark = self.rng.randint(int(replica.log_start_offset), int(replica.log_end_offset))
                replica.high_watermark = type(replica.high_watermark)(mark)

    def poll(self) -> None:
        """Change what is read, poll, and compare with what a client without a session gets."""
        wanted, forget = {}, []
        for place in [*self.replicas, ("t", 9)]:
            choice = self.rng.random()
            if choice < 0.2:
                wanted[place] = self.rng.randint(-1, 4)
            elif choice < 0.3 and place in self.reads:
                forget.append(place)
        if self.client.epoch == 0:
            forget = []
            wanted = wanted or {("t", 0): 0}
            self.reads.clear()
            self.known.clear()
        self.reads.update(wanted)
        for place in forget:
            del self.reads[place]
            self.known.pop(place, None)
        asked = [(topic, index, offset) for (topic, index), offset in wanted.items()]
        told = self.client.ask(*asked, forget=tuple(forget))
        for place, answer in told.items():
            self.known[place] = known(answer)
        if not self.reads:
            assert (told, self.client.id) == ({}, 0)
            self.client.epoch = 0
            return
        assert set(told) <= set(self.reads)
        self.compare(told)

    def compare(self, told: dict[Place, PartitionData]) -> None:
        """With the answer to a full request."""
        other = Client(self.world, self.version)
        other.epoch = -1
        truth = other.ask(*((topic, index, at) for (topic, index), at in self.reads.items()))
        assert self.known == {place: known(answer) for place, answer in truth.items()}
        for place, answer in truth.items():
            has_records = bool(answer.records)
            assert (place in told and bool(told[place].records)) == has_records


def known(answer: PartitionData) -> Known:
    """What a client remembers."""
    return answer.error_code, answer.high_watermark, answer.log_start_offset


@pytest.mark.parametrize("version", [7, 12, 13, 18])
@pytest.mark.parametrize("seed", range(6))
def test_a_session_hides_no_news(world: BrokerWorld, seed: int, version: int) -> None:
    walk = Walk(world, seed, version)
    for _ in range(STEPS):
        for _ in range(walk.rng.randrange(3)):
            walk.happen()
        walk.poll()
    sessions = world.services.fetch_sessions
    assert len(sessions) <= 1 + STEPS
    assert sessions.partition_count == sum(
        one.partition_count for one in sessions._sessions.values()
    )
