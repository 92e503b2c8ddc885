"""When an operator's word lets a partition begin anew with what buckets have (decision 0067)."""

import pytest
from tests.controller.test_declared_losses import Lost
from tests.controller.test_grants import GROUP, brokers

from strandline.controller.commands import Refused
from strandline.controller.loss_commands import LossDeclared, RecoverPartition
from strandline.controller.records import ConfigsChanged
from strandline.controller.reports import Report
from strandline.model.cluster import BucketRange, Labels, Loss, Partition
from strandline.model.ids import BrokerId

EAST = BucketRange("east", 0, 20)


class Tiered(Lost):
    """Voters 2 and 3 are silent; the logs of voter 1 and observer 4 end at 10 and 8. The topic has
    buckets."""

    def __init__(self, *, is_tiered: bool = True) -> None:
        super().__init__()
        self.buckets = {"east": Labels("east"), "west": Labels("west")}
        self.name = self.partition.topic
        if is_tiered:
            keys: dict[str, str | None] = {"remote.storage.enable": "true"}
            self.commit((ConfigsChanged("topic", self.name, keys),))

    @property
    def now(self) -> Partition:
        return self.state.cluster.topics[self.name].partitions[0]

    def recover(self, *lost: int, history: tuple[BucketRange, ...] = (EAST,)) -> Loss | str:
        """What was taken down, or why nothing was."""
        for one in self.alive:
            hears = self.reports[one].hears if one in self.reports else None
            logs = {self.now.group: self.logs[one]} if one in self.logs else {}
            self.reports[one] = Report(0, 1, hears=hears or tuple(self.alive), logs=logs)
        asked = RecoverPartition(
            group=self.now.group,
            grant=self.now.grant,
            brokers=brokers(*lost),
            history=history,
            by="a person",
            at_ms=7,
            validate_only=True,
        )
        found = self.run(asked)
        if isinstance(found, Refused):
            return found.message
        assert isinstance(found, LossDeclared)
        done = self.run(
            RecoverPartition(
                group=asked.group,
                grant=asked.grant,
                brokers=asked.brokers,
                history=history,
                shown=found.logs,
                by=asked.by,
                at_ms=asked.at_ms,
            )
        )
        assert isinstance(done, LossDeclared), done
        return done.loss


def test_another_group_takes_the_place_in_the_next_grant() -> None:
    world = Tiered()
    before = world.now
    loss = world.recover(2, 3, history=(EAST, BucketRange("west", 5, 12)))
    assert isinstance(loss, Loss)
    assert (loss.grant, loss.committed, loss.end, loss.survivors) == (1, 20, 20, ())
    after = world.now
    assert after.group != before.group and before.group not in world.state.cluster.groups
    assert (after.grant, after.first_grant, after.version) == (1, 1, 0)
    assert (after.replicas, after.observers) == (before.replicas, before.observers)
    assert after.losses == (loss,) and after.group_losses == ()
    assert not after.is_fenced and not after.is_declared
    state = world.state
    assert (state.first_offset(after.group), state.first_grant(after.group)) == (20, 1)
    assert state.history(after.group) == loss.history
    # Only those that are up vote; the others join later, and nothing of theirs counts as lost.
    assert after.voters == (1,)
    assert state.first_roles(after.group).voters == (1,)
    assert [after.lost_in(BrokerId(one)) for one in (1, 2, 3)] == [0, 0, 0]
    assert not state.has_lost(BrokerId(2), after.group)
    assert state.cluster.given_up(after) == frozenset()
    assert world.replayed().cluster == state.cluster


def test_it_is_done_once_and_again_in_a_later_grant() -> None:
    world = Tiered()
    loss = world.recover(2, 3)
    assert isinstance(loss, Loss)
    known = world.now
    world.log_of(1, end=20, committed=20, is_led=True, last_epoch=1 << 20)
    assert "it has a leader" in str(world.recover(2, 3))
    assert world.now == known
    world.logs.clear()
    world.reports.clear()
    world.alive -= {BrokerId(1), BrokerId(4)}
    world.alive.add(BrokerId(2))
    world.log_of(2, end=0, committed=0, has_lost=True)
    again = world.recover(1, 3, 4, history=(BucketRange("east", 0, 30),))
    assert isinstance(again, Loss), again
    assert (again.grant, world.now.losses) == (2, (loss, again))
    assert world.now.voters == (2,)


def test_where_no_log_is_left_the_buckets_suffice() -> None:
    world = Tiered()
    for one in (1, 4):
        world.log_of(one, end=0, committed=0, has_lost=True)
    assert isinstance(world.recover(2, 3), Loss)


@pytest.mark.parametrize("end", [20, 21])
def test_a_log_that_ends_as_far_goes_on_itself(end: int) -> None:
    world = Tiered()
    world.log_of(1, end=end, committed=6)
    assert "without --from-bucket" in str(world.recover(2, 3))


def test_a_lost_log_that_has_more_has_to_be_given_up_too() -> None:
    world = Tiered()
    world.log_of(4, end=20, committed=0, has_lost=True)
    assert isinstance(world.recover(2, 3), Loss)
    world = Tiered()
    world.log_of(4, end=21, committed=0, has_lost=True)
    assert "stop it and give it up too" in str(world.recover(2, 3))


def test_without_need_or_without_buckets_nothing_is_done() -> None:
    assert "no tiered storage" in str(Tiered(is_tiered=False).recover(2, 3))
    assert "no bucket north" in str(Tiered().recover(2, 3, history=(BucketRange("north", 0, 20),)))
    assert "name buckets" in str(Tiered().recover(2, 3, history=()))
    assert "name buckets" in str(Tiered().recover(2, 3, history=(BucketRange("east", 9, 9),)))
    world = Tiered()
    world.log_of(1, end=10, committed=6, is_led=True)
    assert "leader" in str(world.recover(2, 3))
    world = Tiered()
    assert "reaches the controller" in str(world.recover(1, 2, 3))
    assert world.now.group == GROUP


def test_none_of_the_brokers_is_up() -> None:
    world = Tiered()
    world.alive -= {BrokerId(1), BrokerId(4)}
    world.reports.clear()
    assert "start one of them" in str(world.recover(1, 2, 3, 4))
