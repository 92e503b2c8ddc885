"""The cable between two cities is cut, and a third site reaches both: one side continues meanwhile.

Two voters in York (1, 2) and in Boston (4, 5); the observer (3) is at the third site, and leads the
controller. Three have to acknowledge.

Source: docs/decisions/0020-who-votes.md, "Cut off from each other"; "Automatic Observer Promotion"
(seed 3), the 2.5-data-centre example."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_promotion import constraints, watched_world, writes
from tests.broker.voters_world import votes

from strandline.broker.groups.arbitration import Arbitrating
from strandline.model.ids import CONTROLLER_GROUP, BrokerId
from strandline.replication.liveness.fencing import Fencing
from strandline.replication.liveness.peer_contacts import PeerContacts

REGIONS = {1: "york", 2: "york", 3: "third", 4: "boston", 5: "boston"}
YORK, BOSTON, THIRD = (1, 2), (4, 5), 3
ORDERS = {"boston": (4, 1, 5, 2), "york": (1, 4, 2, 5)}
SIDES = {"boston": BOSTON, "york": YORK}
Ways = list[tuple[int, int]]


def ways(here: Iterable[int], there: Iterable[int]) -> Ways:
    """Both ways between these."""
    return [*product(here, there), *product(there, here)]


CABLE = ways(YORK, BOSTON)


def cut(world: MovingWorld, lost: Ways = CABLE) -> None:
    for one, other in lost:
        world.fabric.cut(BrokerId(one), BrokerId(other))


def heal(world: MovingWorld, lost: Ways = CABLE) -> None:
    for one, other in lost:
        world.fabric.heal(BrokerId(one), BrokerId(other))


def make_controller(world: MovingWorld, broker: int) -> None:
    at = world.controller_leader()
    if at != broker:
        replica = world.broker(at).replication.replicas[CONTROLLER_GROUP]
        replica.transfer_leadership(BrokerId(broker))
        world.until(lambda: world.controller_leader() == broker)


@contextmanager
def cities(monkeypatch: pytest.MonkeyPatch, preferred: str = "boston") -> Iterator[MovingWorld]:
    order = ORDERS[preferred]
    policy = constraints({"york": 2, "boston": 2}, {"third": 1})
    with watched_world(
        monkeypatch, order, (THIRD,), policy=policy, min_insync=3, regions=REGIONS
    ) as world:
        world.until(lambda: world.leader_of(TOPIC) == order[0])
        make_controller(world, THIRD)
        yield world


def finish(world: MovingWorld, preferred: str = "boston") -> None:
    """All is as before, and all that was acknowledged is there."""
    voters = ORDERS[preferred]
    world.until(lambda: votes(world, *voters))
    world.finish(*voters, observers=(THIRD,))
    assert world.known.acting == ()


@pytest.mark.parametrize("preferred", ORDERS)
def test_the_side_of_the_preferred_leader_goes_on_and_the_other_one_returns(
    monkeypatch: pytest.MonkeyPatch, preferred: str
) -> None:
    with cities(monkeypatch, preferred) as world:
        cut(world)
        world.until(lambda: votes(world, *SIDES[preferred], THIRD))
        writes(world)
        world.advance(30_000)
        writes(world)
        assert votes(world, *SIDES[preferred], THIRD)
        assert world.known.grant == 1, "one side was tried, once"
        heal(world)
        finish(world, preferred)


@pytest.mark.parametrize("preferred", ORDERS)
@pytest.mark.parametrize("deaf", SIDES)
def test_where_one_way_alone_is_cut_it_is_the_same(
    monkeypatch: pytest.MonkeyPatch, preferred: str, deaf: str
) -> None:
    """Whichever side does not hear the other."""
    there = BOSTON if deaf == "york" else YORK
    lost = [*product(there, SIDES[deaf])]
    with cities(monkeypatch, preferred) as world:
        cut(world, lost)
        world.until(lambda: votes(world, *SIDES[preferred], THIRD))
        writes(world)
        heal(world, lost)
        finish(world, preferred)


def test_one_side_that_tells_of_the_cut_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boston's brokers do not report which brokers they hear."""
    silent = PeerContacts.silent

    def reported(self: PeerContacts, peers: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
        found = silent(self, peers)
        return () if {*found} & {*YORK} else found

    monkeypatch.setattr(PeerContacts, "silent", reported)
    with cities(monkeypatch) as world:
        cut(world)
        world.until(lambda: votes(world, *BOSTON, THIRD))
        writes(world)
        heal(world)
        finish(world)


def test_with_a_third_side_the_one_that_holds_everything_goes_on_and_the_old_leader_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Boston's two lose each other, too: either of them may lack what was acknowledged."""
    lost = [*CABLE, *ways((4,), (5,))]
    with cities(monkeypatch) as world:
        old = world.replicas_of(TOPIC)[4]
        cut(world, lost)
        world.advance(100)
        committed = old.committed_end
        world.until(lambda: votes(world, *YORK, THIRD))
        writes(world)
        assert old.committed_end == committed
        assert not old.can_serve_reads
        heal(world, lost)
        finish(world)


@contextmanager
def fenced_by_a_cut(monkeypatch: pytest.MonkeyPatch, world: MovingWorld) -> Iterator[None]:
    """The cable is cut, and all have been fenced; no leader is appointed in this block."""
    with monkeypatch.context() as patch:
        patch.setattr(Arbitrating, "_choose", _nothing)
        cut(world)
        world.until(lambda: world.known.is_fenced)
        world.advance(3_000)
        yield


def test_where_the_cut_ends_between_the_fence_and_the_appointment_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cities(monkeypatch) as world:
        with fenced_by_a_cut(monkeypatch, world):
            heal(world)
            world.advance(3_000)
        writes(world)
        finish(world)


def test_a_controller_that_hears_one_side_alone_appoints_that_one_though_the_other_was_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It moves to York when the grant has begun, and Boston was to go on."""
    with cities(monkeypatch) as world:
        with fenced_by_a_cut(monkeypatch, world):
            make_controller(world, 1)
        world.until(lambda: votes(world, *YORK, THIRD))
        writes(world)
        assert world.known.grant == 1
        heal(world)
        finish(world)


def test_a_controller_that_does_not_hear_who_was_chosen_appoints_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It moves to York when Boston was appointed: something may be acknowledged there. Boston goes
    on once the controller is back at the third site, or the cut has ended."""
    with cities(monkeypatch) as world:
        with monkeypatch.context() as patch:
            patch.setattr(Fencing, "appoint", _nothing)
            cut(world)
            world.until(lambda: world.known.appointment is not None)
            assert world.known.pending == BOSTON
            make_controller(world, 1)
        world.advance(30_000)
        assert world.known.appointment is not None and world.known.pending == BOSTON
        assert world.known.grant == 1, "none is spent on who cannot lead"
        make_controller(world, THIRD)
        world.until(lambda: votes(world, *BOSTON, THIRD))
        writes(world)
        heal(world)
        finish(world)


def test_the_key_that_lets_voters_leave_is_the_way_out_where_it_was_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cities(monkeypatch) as world:
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "false")
        cut(world)
        world.advance(15_000)
        before = len(world.acked)
        world.advance(5_000)
        assert len(world.acked) == before and world.known.grant == 0
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "true")
        writes(world)
        heal(world)
        finish(world)


def test_a_link_that_comes_and_goes_costs_few_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each grant is one of 2,047."""
    with cities(monkeypatch) as world:
        for _ in range(10):
            cut(world)
            world.advance(6_000)
            heal(world)
            world.advance(1_500)
        finish(world)
        assert 1 <= world.known.grant <= 10


async def _nothing(*_: object, **__: object) -> None:
    """It does not get through."""
