"""How long a leader waits for a grant that cannot begin.

Source: decision 0029."""

from dataclasses import replace

from tests.storage.storage_world import ManualClock

from strandline.broker.groups.blocked_grants import (
    BLOCKED_MS,
    CALM_MS,
    DOUBLINGS_MAX,
    BlockedGrants,
)
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

OLD = tuple(map(BrokerId, (1, 2, 3)))
NEW = tuple(map(BrokerId, (1, 2, 4)))
GRANTED = Partition("moved", 0, GroupId(7), OLD, target=NEW, pending=NEW)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.blocked_grants = BlockedGrants(self.clock)
        self.partition = GRANTED

    def patience_ms(self, *, is_still_wanted: bool) -> int:
        """How long the present grant has to be waited for, in steps of a second."""
        begin_ms = self.clock.monotonic_ms()
        while not self.blocked_grants.is_due(self.partition, is_still_wanted=is_still_wanted):
            self.clock.advance(1_000)
        return self.clock.monotonic_ms() - begin_ms

    def withdraw(self) -> None:
        """It is withdrawn, and then granted anew."""
        assert self.blocked_grants.note_due(self.partition, is_still_wanted=True)
        assert not self.blocked_grants.note_due(self.partition, is_still_wanted=True)
        as_it_was = replace(self.partition, version=self.partition.version + 1, pending=OLD)
        self.blocked_grants.note_begun(as_it_was)
        self.partition = replace(GRANTED, version=as_it_was.last_version)


def test_what_is_withdrawn_again_and_again_is_waited_for_longer_and_nothing_else_is() -> None:
    world = World()
    for times in range(DOUBLINGS_MAX + 2):
        patience_ms = BLOCKED_MS << min(times, DOUBLINGS_MAX)
        assert world.patience_ms(is_still_wanted=True) == patience_ms
        world.withdraw()
    assert world.patience_ms(is_still_wanted=False) == BLOCKED_MS
    other = tuple(map(BrokerId, (1, 2, 5)))
    world.partition = replace(world.partition, version=99, target=other, pending=other)
    assert world.patience_ms(is_still_wanted=True) == BLOCKED_MS


def test_who_begins_or_was_calm_for_long_is_waited_for_as_at_first() -> None:
    world = World()
    world.patience_ms(is_still_wanted=True)
    world.withdraw()
    assert world.patience_ms(is_still_wanted=True) == 2 * BLOCKED_MS
    world.clock.advance(CALM_MS)
    world.partition = replace(world.partition, version=50)
    assert world.patience_ms(is_still_wanted=True) == BLOCKED_MS
    world.withdraw()
    world.blocked_grants.note_begun(world.partition)
    world.partition = replace(world.partition, version=60)
    assert world.patience_ms(is_still_wanted=True) == BLOCKED_MS
