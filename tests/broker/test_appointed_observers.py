"""Most or all voters are declared lost, and an observer with the best log leads (decision 0027)."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_broker_in_a_cluster import fetch
from tests.broker.test_damaged_logs import fetch_error
from tests.broker.test_declared_losses import (
    STAGES,
    _nothing,
    ask,
    cut,
    declare,
    heal,
    look,
    until_more_is_acked,
)
from tests.broker.test_lost_disk import lose_disk

from strandline.model.cluster import Loss
from strandline.protocol.errors import Error
from strandline.raft.follower.rejoin import Rejoin
from strandline.replication.liveness.fencing import Fencing

HOME, OBSERVERS = (3, 4, 5), (1, 2)
LEFT, LOST = 3, (4, 5)
WITNESS, OTHER = OBSERVERS
"""Both are voters of the controller; the first has what those who are lost acknowledged."""
SHRINKS = ("voters.shrink.enable", "true")


@pytest.fixture(params=[(), (SHRINKS,)], ids=["stays", "shrinks"])
def world(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 3 to 5 and two observers, a producer that goes on."""
    configs = (("min.insync.replicas", "1"), ("observer.demotion.delay.ms", "500"), *request.param)
    with moving_world(monkeypatch, HOME, configs=configs) as made:
        made.balance(HOME, OBSERVERS)
        made.finish(*HOME, observers=OBSERVERS)
        yield made


def lose(world: MovingWorld, *, left: tuple[int, ...], lost: tuple[int, ...]) -> None:
    """Have some acknowledge what others lack, and stop them at once; the others are heard again."""
    cut(world, left, lost)
    world.until(lambda: world.leader_of(TOPIC) in lost)
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before + 10)
    for one in lost:
        world.hosts[one].kill()
    heal(world, left, lost)


def start(world: MovingWorld, *brokers: int) -> None:
    for one in brokers:
        world.hosts[one].start()
    world.until_started(*brokers)


def check(world: MovingWorld, loss: Loss, before: list[bytes]) -> list[bytes]:
    """All is as it was placed, and no replica lacks records that were not given up; returns what
    is gone."""
    world.until(lambda: world.is_settled(*HOME, observers=OBSERVERS))
    world.until(lambda: not world.known.acting)
    until_more_is_acked(world)
    world.until(lambda: world.is_settled(*HOME, observers=OBSERVERS))
    assert world.violations == []
    assert world.leader_of(TOPIC) in HOME
    values = fetch(world, TOPIC, at=world.leader_of(TOPIC))
    assert len(values) == len(set(values))
    gone = [one for one in world.acked if one not in set(values)]
    assert set(gone) <= set(before)
    assert all(world.offsets[one] >= loss.committed for one in gone)
    for one in (*HOME, *OBSERVERS):
        world.until(lambda one=one: world.replicas_of(TOPIC)[one].high_watermark >= len(values))
        # A follower asks its leader first where the partition begins: its connection may be new.
        world.until(lambda one=one: fetch_error(world, one, TOPIC) == 0, every_ms=100)
        assert fetch(world, TOPIC, at=one)[: len(values)] == values
    return gone


def test_nothing_is_lost_that_an_observer_has(world: MovingWorld) -> None:
    """The voter that is left lacks what the others acknowledged; the observer has it."""
    lose(world, left=(LEFT,), lost=LOST)
    before = list(world.acked)
    loss = declare(world, *LOST)
    assert loss.leader in OBSERVERS and set(loss.survivors) == {LEFT, *OBSERVERS}
    world.until(lambda: world.leader_of(TOPIC) == loss.leader)
    world.until(lambda: loss.leader in world.known.voters and not world.known.is_declared)
    until_more_is_acked(world)
    # The voter that is left is brought up to date, and leads; the observer votes no more.
    world.until(lambda: world.known.voters == (LEFT,))
    world.until(lambda: world.leader_of(TOPIC) == LEFT)
    start(world, *LOST)
    assert check(world, loss, before) == []


def test_the_observer_stays_while_the_others_are_too_few_for_acks_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two of three have to have a record, and one of them is left."""
    configs = (("min.insync.replicas", "2"),)
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.balance(HOME, OBSERVERS)
        world.finish(*HOME, observers=OBSERVERS)
        lose(world, left=(LEFT, OTHER), lost=LOST)
        before = list(world.acked)
        loss = declare(world, *LOST)
        assert (set(loss.survivors), loss.leader) == ({LEFT, *OBSERVERS}, WITNESS)
        world.until(lambda: set(world.known.voters) == {LEFT, WITNESS})
        until_more_is_acked(world)
        world.advance(10_000)
        assert set(world.known.voters) == {LEFT, WITNESS}
        start(world, *LOST)
        assert check(world, loss, before) == []


def test_where_no_voter_is_left_an_observer_goes_on(world: MovingWorld) -> None:
    lose(world, left=(OTHER,), lost=HOME)
    before = list(world.acked)
    loss = declare(world, *HOME)
    assert (set(loss.survivors), loss.leader) == (set(OBSERVERS), WITNESS)
    world.until(lambda: world.leader_of(TOPIC) == WITNESS)
    until_more_is_acked(world)
    # It goes on alone, for as long as it takes.
    world.advance(20_000)
    assert (world.known.voters, world.leader_of(TOPIC)) == ((WITNESS,), WITNESS)
    until_more_is_acked(world)
    start(world, LEFT)
    world.until(lambda: LEFT in world.known.voters)
    start(world, *LOST)
    assert check(world, loss, before) == []


def test_where_all_voters_are_back_with_empty_disks_an_observer_goes_on(
    world: MovingWorld,
) -> None:
    lose(world, left=(OTHER,), lost=HOME)
    before = list(world.acked)
    for one in HOME:
        lose_disk(world, one)
    start(world, *HOME)
    world.advance(5_000)
    assert world.leader_of(TOPIC) == 0
    loss = declare(world)
    assert (loss.lost, set(loss.survivors), loss.leader) == ((), set(OBSERVERS), WITNESS)
    assert check(world, loss, before) == []


@pytest.mark.parametrize("stage", STAGES)
def test_voters_that_were_declared_lost_may_come_back_at_any_time(
    world: MovingWorld, stage: str
) -> None:
    """All of them, with all that they had: a majority, as they know it."""
    lose(world, left=(OTHER,), lost=HOME)
    before = list(world.acked)
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in STAGES[stage]:
            patch.setattr(kind, name, _nothing)
        loss = declare(world, *HOME)
        reached = {
            "declared": lambda: world.known.is_fenced,
            "appointed": lambda: world.known.appointment is not None,
            "stable": lambda: not world.known.is_declared,
        }
        world.until(reached[stage])
        start(world, *HOME)
        world.advance(3_000)
        if stage != "stable":
            assert reached[stage]() and not world.any_leader(lambda one: True)
    assert check(world, loss, before) == []


@pytest.mark.parametrize("disk", ["kept", "lost"])
def test_the_observer_that_was_chosen_dies_before_it_leads(world: MovingWorld, disk: str) -> None:
    """No leader is appointed without it. It is given up with the others, and what it alone had is
    shown to be at risk then. Whatever it has when it comes back counts for nothing."""
    lose(world, left=(LEFT, OTHER), lost=LOST)
    before = list(world.acked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fencing, "appoint", _nothing)
        first = declare(world, *LOST)
        assert first.leader == WITNESS
        world.until(lambda: world.known.appointment is not None)
    world.hosts[WITNESS].kill()
    world.advance(20_000)
    assert world.leader_of(TOPIC) == 0
    second = declare(world, *LOST, WITNESS)
    assert second.leader in (LEFT, OTHER) and second.end < first.end
    world.until(lambda: world.leader_of(TOPIC) != 0)
    if disk == "lost":
        lose_disk(world, WITNESS)
    start(world, *LOST, WITNESS)
    assert check(world, second, before)


def test_where_nobody_comes_back_the_partition_moves_to_other_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To as many as it had; then it is led by a voter, and the observer is one."""
    with moving_world(monkeypatch, LOST, configs=(("min.insync.replicas", "1"),)) as world:
        world.balance(LOST, (1,))
        world.finish(*LOST, observers=(1,))
        for one in LOST:
            world.hosts[one].kill()
        before = list(world.acked)
        loss = declare(world, *LOST)
        world.until(lambda: world.leader_of(TOPIC) == loss.leader == 1)
        until_more_is_acked(world)
        assert world.move(2, 1) == Error.INVALID_REPLICA_ASSIGNMENT
        assert world.move(2, 3, 1) == Error.NONE
        world.until(lambda: world.is_settled(2, 3, observers=(1,)))
        until_more_is_acked(world)
        start(world, *LOST)
        world.until(lambda: world.is_settled(2, 3, observers=(1,)))
        values = set(fetch(world, TOPIC, at=world.leader_of(TOPIC)))
        gone = [one for one in world.acked if one not in values]
        assert set(gone) <= set(before) and world.violations == []
        assert all(world.offsets[one] >= loss.committed for one in gone)


def stand_in_the_way(world: MovingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer whose log was copied anew, and that has not rejoined, has the best log of all
    that are left: nothing is declared without it, nor with it."""
    world.hosts[WITNESS].kill()
    lose_disk(world, WITNESS)
    monkeypatch.setattr(Rejoin, "is_due", lambda self, matched: False)
    start(world, WITNESS)
    world.until(lambda: world.replicas_of(TOPIC)[WITNESS].log_end_offset > 5)
    lose(world, left=(LEFT, OTHER), lost=LOST)
    world.until(lambda: not world.any_leader(lambda one: True))
    for _ in range(40):
        found = ask(world, broker_ids=list(LOST), validate_only=True)
        if "may not lead" in (found.error_message or ""):
            break
        world.advance(500)
    assert found.error_code == Error.POLICY_VIOLATION
    assert f"broker {WITNESS}, which may not lead" in (found.error_message or "")


def test_an_observer_whose_log_was_copied_anew_and_may_lack_its_word_stands_in_the_way(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be appointed; it has to be given up, or another one has to come back."""
    stand_in_the_way(world, monkeypatch)
    world.hosts[WITNESS].kill()
    assert look(world, *LOST, WITNESS).leader_id in (LEFT, OTHER)
    monkeypatch.undo()
    start(world, *LOST, WITNESS)
    world.finish(*HOME, observers=OBSERVERS)


def test_who_stood_in_the_way_is_given_up_with_the_others_and_may_be_started_then(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_the_way(world, monkeypatch)
    before = list(world.acked)
    world.hosts[WITNESS].kill()
    loss = declare(world, *LOST, WITNESS)
    assert {one.broker for one in loss.lost} == {*LOST, WITNESS} and loss.leader in (LEFT, OTHER)
    monkeypatch.undo()
    world.until(lambda: world.leader_of(TOPIC) == loss.leader)
    start(world, WITNESS)
    until_more_is_acked(world)
    start(world, *LOST)
    assert check(world, loss, before)  # What only it had, and those who were lost, is gone.
