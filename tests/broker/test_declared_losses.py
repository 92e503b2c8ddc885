"""An operator declares voters lost; they return at any time (decision 0027).

One of three voters, cut off from the others for a while, is what is left: those have acknowledged
what it lacks."""

from collections.abc import Callable, Iterator

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_broker_in_a_cluster import fetch
from tests.broker.test_lost_disk import lose_disk

from strandline.broker.groups.arbitration import Arbitrating
from strandline.model.cluster import Loss
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.declare_lost import DeclareLostRequest, DeclareLostResponse
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
)
from strandline.replication.liveness.fencing import Fencing

HOME = (3, 4, 5)
LEFT, LOST = 3, (4, 5)
CONFIGS = (("min.insync.replicas", "1"),)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 3 to 5, a producer that goes on."""
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as made:
        made.until(lambda: len(made.acked) > 0)
        yield made


def cut(world: MovingWorld, some: tuple[int, ...], others: tuple[int, ...]) -> None:
    for one in some:
        for other in others:
            world.fabric.cut(BrokerId(one), BrokerId(other))
            world.fabric.cut(BrokerId(other), BrokerId(one))


def heal(world: MovingWorld, some: tuple[int, ...], others: tuple[int, ...]) -> None:
    for one in some:
        for other in others:
            world.fabric.heal(BrokerId(one), BrokerId(other))
            world.fabric.heal(BrokerId(other), BrokerId(one))


def leave_one(world: MovingWorld) -> None:
    """Have the others acknowledge what it lacks; brokers outside the group hear it again."""
    cut(world, (LEFT,), LOST)
    world.until(lambda: world.leader_of(TOPIC) in LOST)
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before + 10)


def lose(world: MovingWorld) -> None:
    leave_one(world)
    for one in LOST:
        world.hosts[one].kill()
    heal(world, (LEFT,), LOST)


def ask(world: MovingWorld, **asked: object) -> DeclareLostResponse:
    request = DeclareLostRequest(
        topic=TOPIC, partition=0, grant=world.known.grant, by="a person", **asked
    )
    return world.ask(world._controller_known_at() or LEFT, request, DeclareLostResponse, 0)


def look(world: MovingWorld, *brokers: int) -> DeclareLostResponse:
    """What declaring these lost would do, once it may be."""
    for _ in range(60):
        found = ask(world, broker_ids=list(brokers), validate_only=True)
        if found.error_code == 0:
            return found
        world.advance(500)
    raise AssertionError(found)


def declare(world: MovingWorld, *brokers: int) -> Loss:
    """Declare them lost; what was taken down."""
    found = look(world, *brokers)
    done = ask(world, broker_ids=list(brokers), logs=found.logs)
    assert done.error_code == 0, done.error_message
    loss = world.known.losses[-1]
    assert (loss.committed, loss.end) == (found.committed_offset, found.log_end_offset)
    return loss


def until_more_is_acked(world: MovingWorld) -> None:
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)


def check(world: MovingWorld, loss: Loss, before: list[bytes]) -> None:
    """Only records at risk are gone, and all replicas have the same."""
    world.until(lambda: world.is_settled(*HOME))
    world.until(lambda: not world.known.acting)
    until_more_is_acked(world)
    world.until(lambda: world.is_settled(*HOME))
    assert world.violations == []
    values = fetch(world, TOPIC, at=world.leader_of(TOPIC))
    assert len(values) == len(set(values))
    gone = set(world.acked) - set(values)
    assert gone <= set(before)
    assert all(world.offsets[one] >= loss.committed for one in gone)
    at = min(world.offsets[one] for one in gone) if gone else loss.end
    assert at >= loss.committed
    for one in HOME:
        world.until(lambda one=one: world.replicas_of(TOPIC)[one].high_watermark >= len(values))
        assert fetch(world, TOPIC, at=one)[: len(values)] == values


def test_what_is_left_goes_on_and_only_what_was_at_risk_is_gone(world: MovingWorld) -> None:
    lose(world)
    before = list(world.acked)
    loss = declare(world, *LOST)
    assert (loss.survivors, loss.leader, loss.by) == ((LEFT,), LEFT, "a person")
    world.until(lambda: world.leader_of(TOPIC) == LEFT)
    until_more_is_acked(world)
    assert world.known.voters == (LEFT,) and not world.known.is_declared
    for one in LOST:
        world.hosts[one].start()
    world.until_started(*LOST)
    check(world, loss, before)
    assert set(before) - set(fetch(world, TOPIC, at=LEFT))  # There was something to lose.


def test_who_is_back_without_its_disk_need_not_be_named(world: MovingWorld) -> None:
    """All are heard, and too few have records: the partition would never have a leader."""
    leave_one(world)
    before = list(world.acked)
    for one in LOST:
        lose_disk(world, one)
    heal(world, (LEFT,), LOST)
    for one in LOST:
        world.hosts[one].start()
    world.until_started(*LOST)
    world.advance(5_000)
    assert world.leader_of(TOPIC) == 0
    loss = declare(world)
    assert (loss.lost, loss.survivors, loss.leader) == ((), (LEFT,), LEFT)
    check(world, loss, before)


def test_who_asks_what_is_left_hears_that_nobody_is_appointed_yet(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(world)
    monkeypatch.setattr(Arbitrating, "_fence", _nothing)
    request = DescribeReplicaLogsRequest(topic=TOPIC, partition=0)
    assert not world.ask(LEFT, request, DescribeReplicaLogsResponse, 0).needs_all
    declare(world, *LOST)
    world.advance(1_000)
    assert world.ask(LEFT, request, DescribeReplicaLogsResponse, 0).needs_all


async def _nothing(*_: object, **__: object) -> None:
    """It does not get through."""


STAGES: dict[str, tuple[tuple[type, str], ...]] = {
    "declared": ((Arbitrating, "_fence"),),
    "appointed": ((Fencing, "appoint"),),
    "stable": (),
}
"""{stage in which they come back: what does not get through until they are there}"""


@pytest.mark.parametrize("back", [(4,), (5,), (4, 5)])
@pytest.mark.parametrize("stage", STAGES)
def test_who_was_declared_lost_may_come_back_at_any_time(
    world: MovingWorld, stage: str, back: tuple[int, ...]
) -> None:
    lose(world)
    before = list(world.acked)
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in STAGES[stage]:
            patch.setattr(kind, name, _nothing)
        loss = declare(world, *LOST)
        reached: dict[str, Callable[[], bool]] = {
            "declared": lambda: world.known.is_fenced,
            "appointed": lambda: world.known.appointment is not None,
            "stable": lambda: not world.known.is_declared,
        }
        world.until(reached[stage])
        for one in back:
            world.hosts[one].start()
        world.until_started(*back)
        world.advance(3_000)
        assert reached[stage]()
        if stage != "stable":
            assert world.leader_of(TOPIC) == 0
            assert not world.any_leader(lambda one: True)
    for one in set(LOST) - set(back):
        world.hosts[one].start()
    world.until_started(*LOST)
    check(world, loss, before)


def test_it_is_refused_while_somebody_who_is_given_up_is_heard(world: MovingWorld) -> None:
    lose(world)
    look(world, *LOST)
    world.hosts[5].start()
    world.until_started(5)
    refused = ask(world, broker_ids=list(LOST), validate_only=True)
    assert refused.error_code == Error.POLICY_VIOLATION
    assert "broker 5 reaches the controller" in (refused.error_message or "")
    assert not world.known.losses
    world.until(lambda: world.leader_of(TOPIC) != 0)
    refused = ask(world, broker_ids=[4], validate_only=True)
    assert refused.error_code == Error.POLICY_VIOLATION
    assert "it has a leader" in (refused.error_message or "")
    world.hosts[4].start()
    world.until_started(4)
    world.finish(*HOME)


@pytest.mark.parametrize("alive", [(4,), (5,), (4, 5)])
def test_processes_that_were_only_cut_off_end_themselves_and_begin_anew(
    world: MovingWorld, alive: tuple[int, ...]
) -> None:
    """Until they have, the new leader gives them nothing, and takes nothing of theirs for true."""
    leave_one(world)
    cut(world, LOST, (1, 2))
    for one in set(LOST) - set(alive):
        world.hosts[one].kill()
    loss = declare(world, *LOST)
    world.until(lambda: world.leader_of(TOPIC) == LEFT)
    world.advance(1_000)  # As long as they live, they answer what they were sent before.
    before = list(world.acked)
    until_more_is_acked(world)
    assert not world.failures
    # They hear the new leader before they hear of the controller, or the other way round.
    heal(world, LOST, (LEFT,))
    world.advance(3_000)
    heal(world, LOST, (1, 2))
    world.until(lambda: set(world.failures) == set(alive))
    assert all("declared lost by a person" in one for one in world.failures.values())
    world.advance(3_000)
    assert world.replicas_of(TOPIC)[LEFT].configuration.members == (LEFT,)
    for one in alive:
        world.hosts[one].kill()
    if alive == LOST:  # These led on, beside the others, until they heard of it.
        world.violations.clear()
    for one in LOST:
        world.hosts[one].start()
    world.until_started(*LOST)
    check(world, loss, before)
