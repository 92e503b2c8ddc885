"""A write quorum that is promised with a version (decision 0041)."""

import msgspec
import pytest
from tests.raft.member import Member, shape
from tests.raft.test_versions import settled

from strandline.model.ids import BrokerId
from strandline.raft import events
from strandline.raft.group.configuration import Configuration, promised_quorum_of

THREE = tuple(map(BrokerId, (1, 2, 3)))


def change(
    min_insync: int,
    version: int,
    *,
    floor: int = 0,
    voters: tuple[BrokerId, ...] = THREE,
    observers: tuple[BrokerId, ...] = (),
) -> events.ChangeConfiguration:
    return events.ChangeConfiguration(
        voters, observers, min_insync, version, floor or msgspec.UNSET
    )


def promised() -> Member:
    """A leader of three, that has committed a promise of all three."""
    leader = Member().lead_established()
    leader.step(change(3, 1, floor=3))
    return settled(leader)


def test_the_write_quorum_goes_no_lower_under_the_same_version() -> None:
    leader = promised()
    assert promised_quorum_of(leader.raft.configuration.floor) == 3
    assert leader.step(change(2, 1)) == []
    assert leader.raft.configuration.min_insync == 3


def test_what_changes_under_the_same_version_keeps_the_floor() -> None:
    leader = promised()
    leader.step(change(3, 1, observers=(BrokerId(4),)))
    present = leader.raft.configuration
    assert (present.observers, promised_quorum_of(present.floor)) == ((4,), 3)


def test_a_new_version_withdraws_it_whatever_is_under_way() -> None:
    leader = promised()
    leader.step(change(3, 1, observers=(BrokerId(4),)))
    assert leader.step(change(3, 1)) == []  # Another change is under way.
    leader.step(change(1, 2, observers=(BrokerId(4),)))
    present = leader.raft.configuration
    assert (present.min_insync, promised_quorum_of(present.floor), present.version) == (1, 0, 2)


def test_a_leader_that_has_committed_nothing_may_withdraw_it() -> None:
    base = Configuration(THREE, min_insync=3, version=1, floor=3)
    leader = Member(log=shape(1, configurations=((0, base),))).lead()
    assert not leader.raft.may_serve
    leader.step(change(3, 1, observers=(BrokerId(4),)))
    leader.step(change(2, 1))
    assert leader.raft.configuration == base
    leader.step(change(1, 2))
    assert leader.raft.configuration == Configuration(THREE, min_insync=1, version=2)


def test_other_members_delegate_nothing() -> None:
    leader = promised()
    leader.step(change(3, 2, floor=3, voters=THREE[:2], observers=THREE[2:]))
    assert leader.raft.configuration.is_joint
    settled(leader)
    present = leader.raft.configuration
    assert (present.voters, promised_quorum_of(present.floor)) == ((1, 2), 0)


@pytest.mark.parametrize(("floor", "holders"), [(0, 2), (2, 2), (3, 3)])
def test_a_lease_rests_on_as_many_as_were_promised(floor: int, holders: int) -> None:
    one = Configuration(THREE, min_insync=3, floor=floor or msgspec.UNSET)
    assert one.holds_lease(THREE[:holders])
    assert not one.holds_lease(THREE[: holders - 1])


def test_what_promises_nothing_is_written_as_before() -> None:
    written = msgspec.json.encode(Configuration(THREE, min_insync=2))
    assert b"floor" not in written
    assert msgspec.json.decode(written, type=Configuration).floor is msgspec.UNSET
    promising = msgspec.json.encode(Configuration(THREE, min_insync=3, floor=3))
    assert msgspec.json.decode(promising, type=Configuration).floor == 3
