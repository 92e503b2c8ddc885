"""What a group has promised of its write quorum, as the controller counts on it (decision 0041)."""

from msgspec import UNSET
from tests.controller.test_grants import GROUP, Shrinking

from strandline.controller.arbitration.arbiter import register_of
from strandline.controller.commands import BeginGrant
from strandline.controller.records import VotersStable, decode_record, encode_record
from strandline.model.ids import BrokerId

FENCED = (3, 1, 9)
"""Of the third voter: the epoch and the index of its last entry."""


def promised() -> Shrinking:
    """All three voters have promised to acknowledge whatever is acknowledged."""
    world = Shrinking()
    assert world.request(1, 2, 3, observers=(4,), floor=3)
    assert world.report(1, 2, 3, floor=3)
    return world


def holds_all(world: Shrinking, *brokers: int) -> bool:
    return register_of(world.partition).may_appoint(frozenset(map(BrokerId, brokers)))


def test_one_of_three_that_promised_is_appointed() -> None:
    world = promised()
    assert world.partition.floor == 3
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint(FENCED)
    assert world.partition.appointment is not None
    assert world.partition.appointment.leader == 3


def test_a_promise_counts_once_it_is_reported() -> None:
    world = Shrinking()
    assert world.request(1, 2, 3, observers=(4,), floor=3)
    assert not holds_all(world, 3)
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.appoint(FENCED)


def test_it_counts_no_more_as_soon_as_it_may_be_withdrawn() -> None:
    world = promised()
    assert holds_all(world, 3)
    assert world.request(1, 2, 3, observers=(4,), floor=0)
    assert not holds_all(world, 3)
    assert world.report(1, 2, 3)
    assert world.partition.floor == 0


def test_it_ends_with_the_voters_that_gave_it() -> None:
    world = promised()
    assert world.request(1, 2, observers=(3, 4))
    assert world.report(1, 2)
    assert world.partition.floor == 0


def test_the_same_voters_are_granted_for_another_floor_only() -> None:
    world = promised()
    version = world.partition.version
    for floor in (UNSET, 3):
        assert not world.request(1, 2, 3, observers=(4,), floor=floor)
    assert world.partition.last_version == version


def test_a_promise_that_was_begun_and_cannot_be_committed_is_superseded() -> None:
    world = Shrinking()
    assert world.request(1, 2, 3, observers=(4,), floor=3)
    assert world.request(1, 2, 3, observers=(4,), floor=0, superseded=1)
    assert (world.partition.last_version, len(world.partition.possible)) == (2, 3)
    assert world.report(1, 2, 3)
    assert world.partition.floor == 0


def test_who_promises_nothing_is_noted_as_before() -> None:
    noted = VotersStable(GROUP, 1)
    assert b"floor" not in encode_record(noted)
    assert decode_record(encode_record(noted)) == noted
    with_floor = VotersStable(GROUP, 1, 3)
    assert decode_record(encode_record(with_floor)) == with_floor
