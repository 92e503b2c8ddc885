"""Who votes meanwhile, and who is chosen where nobody can be. Source: decision 0020."""

from collections import Counter
from uuid import UUID

import msgspec
import pytest
from msgspec import UNSET
from tests.controller.controller_world import World, changes

from strandline.controller.commands import (
    AlterConfigs,
    AppointLeader,
    BeginGrant,
    Command,
    ReportVoters,
    RequestVoters,
    ResourceType,
    VotersNoted,
    decode_command,
    encode,
)
from strandline.controller.decide.voters import SUPERSEDED_COUNT_MAX
from strandline.controller.records import (
    Assignment,
    GrantBegun,
    LeaderAppointed,
    ReassignmentSet,
    TopicCreated,
    decode_record,
)
from strandline.model.cluster import Appointment, Partition
from strandline.model.ids import GRANT_MAX, BrokerId, Epoch, GroupId, Index, first_epoch
from strandline.raft.group.configuration import PromisedQuorum

GROUP = GroupId(1)


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


class Shrinking(World):
    """One partition with voters 1 to 3, and 4 as its observer, of 6."""

    def __init__(self, *observers: int) -> None:
        super().__init__(("east", "west", "south") * 2)
        made = Assignment(GROUP, brokers(1, 2, 3), brokers(*(observers or (4,))))
        self.commit((TopicCreated(name="t", id=UUID(int=7), partitions=(made,)),))

    @property
    def partition(self) -> Partition:
        return self.state.cluster.groups[GROUP]

    def does(self, command: Command) -> bool:
        """Whether it is taken."""
        return isinstance(self.run(command), VotersNoted)

    def request(
        self,
        *voters: int,
        observers: tuple[int, ...],
        grant: int = 0,
        superseded: int = 0,
        floor: PromisedQuorum = UNSET,
    ) -> bool:
        epoch = Epoch(first_epoch(grant) + 1)
        version = self.partition.version
        asked = RequestVoters(
            GROUP, version, brokers(*voters), brokers(*observers), epoch, superseded, floor
        )
        return self.does(asked)

    def report(self, *voters: int, grant: int = 0, floor: PromisedQuorum = UNSET) -> bool:
        epoch = Epoch(first_epoch(grant) + 1)
        version = self.partition.last_version
        return self.does(ReportVoters(GROUP, version, brokers(*voters), epoch, floor))

    def appoint(
        self, *ends: tuple[int, int, int], grant: int = 1, configured: tuple[int, ...] = ()
    ) -> bool:
        """`ends`: (broker, epoch, index)."""
        typed = tuple((BrokerId(one), Epoch(epoch), Index(at)) for one, epoch, at in ends)
        stand = tuple(map(Index, configured))
        return self.does(AppointLeader(group=GROUP, grant=grant, ends=typed, configured=stand))


def test_a_voter_that_is_lost_leaves_and_what_placement_wants_stays() -> None:
    world = Shrinking()
    assert world.request(1, 2, observers=(3, 4))
    assert world.report(1, 2)
    known = world.partition
    assert (known.replicas, known.acting, known.observers) == ((1, 2, 3), (1, 2), (4,))
    assert known.hosts == (1, 2, 3, 4)
    assert world.request(1, 2, 3, observers=(4,))
    assert world.report(1, 2, 3)
    assert (world.partition.voters, world.partition.acting) == ((1, 2, 3), ())


def test_observers_stay_the_last_replicas_whoever_votes() -> None:
    """As Kafka's clients see them (decision 0017): also while one is granted a vote, and has it."""
    world = Shrinking()
    assert world.request(1, 2, observers=(3, 4)) and world.report(1, 2)
    assert world.request(1, 2, 4, observers=(3,))
    assert world.partition.pending == (1, 2, 4) and world.partition.hosts == (1, 2, 3, 4)
    assert world.report(1, 2, 4)
    assert world.partition.acting == (1, 2, 4) and world.partition.hosts == (1, 2, 3, 4)


def test_other_voters_are_asked_for_among_those_who_hold_the_log() -> None:
    world = Shrinking()
    assert not world.request(1, 2, observers=(4,))
    assert not world.request(1, 2, 5, observers=(3, 4))
    assert not world.request(1, 2, 3, observers=(4,))
    assert not world.request(observers=(1, 2, 3, 4))


def test_an_appointment_takes_enough_of_each_configuration_that_may_be_in_force() -> None:
    world = Shrinking()
    assert world.request(1, 2, observers=(3, 4))
    assert world.does(BeginGrant(GROUP, 0))
    assert world.partition.is_fenced
    assert not world.appoint((1, 1, 9))
    assert not world.appoint((1, 1, 9), (4, 1, 9))
    assert world.appoint((1, 1, 9), (3, 1, 8))
    known = world.partition
    assert known.appointment == Appointment(BrokerId(1), Epoch(1), Index(9))
    assert known.possible == ((1, 2, 3), (1, 2), (1, 3))
    assert (known.last_version, known.pending_observers) == (2, (2, 4))


def test_the_best_log_of_a_voter_is_chosen_and_never_an_observers() -> None:
    world = Shrinking()
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((2, 1, 9), (3, 1, 10), (4, 1, 12))
    assert world.partition.appointment == Appointment(BrokerId(3), Epoch(1), Index(10))
    assert (world.partition.pending, world.partition.pending_observers) == ((2, 3), (1, 4))


def appointed_of_equal(world: World, group: GroupId, *fenced: int) -> BrokerId:
    """Who is appointed by the first grant, where the logs of these are equal."""
    assert isinstance(world.run(BeginGrant(group, 0)), VotersNoted)
    ends = tuple((BrokerId(one), Epoch(1), Index(9)) for one in fenced)
    assert isinstance(world.run(AppointLeader(group=group, grant=1, ends=ends)), VotersNoted)
    appointment = world.state.cluster.groups[group].appointment
    assert appointment is not None
    return appointment.leader


def test_of_equal_logs_the_preferred_leaders_is_chosen() -> None:
    world = Shrinking()
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((3, 1, 9), (2, 1, 9), (1, 1, 9))
    assert world.partition.appointment == Appointment(BrokerId(1), Epoch(1), Index(9))


def test_a_preferred_leader_in_maintenance_is_passed_over() -> None:
    world = Shrinking()
    spared = changes(int(ResourceType.BROKER), "1", ("broker.maintenance.until.ms", 0, "-1"))
    world.run(AlterConfigs((spared,)))
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((1, 1, 9), (2, 1, 9))
    assert world.partition.appointment == Appointment(BrokerId(2), Epoch(1), Index(9))


def test_after_an_appointment_that_was_not_taken_the_next_one_has_its_turn() -> None:
    world = Shrinking()
    appointed = []
    for grant in range(3):
        assert world.does(BeginGrant(GROUP, grant))
        assert world.appoint((1, 1, 9), (2, 1, 9), (3, 1, 9), grant=grant + 1)
        assert world.partition.appointment is not None
        appointed.append(world.partition.appointment.leader)
    assert appointed == [1, 2, 3]


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_what_a_lost_region_led_is_not_led_by_one_broker_alone(step: int) -> None:
    """It was: by that with the lowest number, and what the others led, too."""
    world = World(("east", "west") * 4)
    groups = range(1, 1 + 24 * step, step)
    made = tuple(Assignment(GroupId(one), brokers(1, 2, 3, 4), brokers(7, 8)) for one in groups)
    world.commit((TopicCreated(name="t", id=UUID(int=7), partitions=made),))
    led: Counter[int] = Counter()
    for one in made:  # The west is left, with 2 and 4, and its observer 8.
        led[appointed_of_equal(world, one.group, 2, 4, 8)] += 1
    assert led.keys() == {2, 4} and min(led.values()) >= 9


def test_of_equal_logs_an_own_voters_is_chosen_before_that_of_who_stands_in() -> None:
    world = World(("east", "west", "south") * 2)
    made = Assignment(GROUP, brokers(5, 6, 3), brokers(1))
    world.commit((TopicCreated(name="t", id=UUID(int=7), partitions=(made,)),))
    asked = RequestVoters(GROUP, 0, brokers(3, 6, 1), brokers(5), Epoch(1))
    assert isinstance(world.run(asked), VotersNoted)
    assert isinstance(world.run(ReportVoters(GROUP, 1, brokers(3, 6, 1), Epoch(1))), VotersNoted)
    assert appointed_of_equal(world, GROUP, 1, 3) == 3


def test_who_is_far_behind_does_not_vote_at_once() -> None:
    world = Shrinking()
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((1, 1, 935), (2, 1, 936), (3, 1, 1000))
    assert world.partition.pending == (2, 3)


def test_who_is_epochs_behind_does_not_vote_at_once() -> None:
    world = Shrinking()
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((2, 1, 9), (3, 2, 4))
    assert world.partition.pending == (3,)


def test_who_was_no_voter_for_certain_needs_the_last_configuration_to_vote() -> None:
    """It may have been left since it was granted: observers go without a word to the controller.
    Who was a voter may hold what nobody else has (`settled_version` says why it lacks nothing)."""
    world = Shrinking()
    assert world.request(1, 2, observers=(3, 4))
    assert world.report(1, 2)
    assert world.request(1, 2, 3, observers=(4,))
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((1, 1, 8), (2, 1, 9), (3, 1, 8), configured=(3, 9, 8))
    assert world.partition.pending == (1, 2)
    assert world.partition.pending_observers == (3, 4)
    assert world.does(BeginGrant(GROUP, 1))
    assert world.appoint((1, 1, 8), (2, 1, 9), (3, 1, 8), grant=2, configured=(3, 8, 8))
    assert world.partition.pending == (1, 2, 3)


def test_the_last_grant_that_an_epoch_can_name_is_not_passed() -> None:
    world = Shrinking()
    world.commit(tuple(GrantBegun(GROUP, one) for one in range(1, GRANT_MAX)))
    assert first_epoch(GRANT_MAX) < 2**31 <= first_epoch(GRANT_MAX + 1)
    assert world.appoint((1, 1, 9), (2, 1, 9), grant=GRANT_MAX - 1)
    assert world.does(BeginGrant(GROUP, GRANT_MAX - 1))
    assert world.appoint((1, 1, 9), (2, 1, 9), grant=GRANT_MAX)
    assert not world.does(BeginGrant(GROUP, GRANT_MAX))
    assert world.partition.grant == GRANT_MAX


def test_the_old_side_asks_and_reports_in_vain_once_a_grant_has_begun() -> None:
    world = Shrinking()
    assert world.request(1, 2, observers=(3, 4))
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.report(1, 2)
    assert world.appoint((2, 1, 9), (3, 1, 9))
    assert not world.report(2, 3, grant=0)
    assert world.report(2, 3, grant=1)
    assert world.partition.possible == ((2, 3),)
    assert not world.request(1, 2, 3, observers=(4,), grant=0)
    assert world.request(1, 2, 3, observers=(4,), grant=1)


def test_a_grant_begins_once_and_appoints_once() -> None:
    world = Shrinking()
    assert world.does(BeginGrant(GROUP, 0))
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.does(BeginGrant(GROUP, 1))
    assert world.appoint((1, 1, 9), (2, 1, 9))
    appointed = world.partition
    assert world.appoint((2, 1, 9), (3, 1, 9))
    assert world.partition == appointed
    assert world.does(BeginGrant(GROUP, 1))
    assert (world.partition.grant, world.partition.appointment) == (2, None)


def test_observers_are_promoted_one_at_a_time_and_are_observers_by_placement_still() -> None:
    world = Shrinking(4, 5)
    assert not world.request(1, 2, 4, 5, observers=(3,))
    assert world.request(1, 2, 4, observers=(3, 5))
    assert world.report(1, 2, 4)
    known = world.partition
    assert (known.replicas, known.observers) == ((1, 2, 3), (4, 5))
    assert known.voters == (1, 2, 4)
    assert world.request(1, 4, 5, observers=(2, 3))
    assert world.report(1, 4, 5)
    assert world.request(1, 2, 3, observers=(4, 5))
    assert world.report(1, 2, 3)
    assert world.partition.acting == ()


def test_a_promoted_observer_holds_what_was_acknowledged_and_one_that_was_not_holds_nothing() -> (
    None
):
    """Of voters 1 and 4 one is enough, whichever; another observer and lost voters are not."""
    world = Shrinking(4, 5)
    assert world.request(1, 4, observers=(2, 3, 5))
    assert world.report(1, 4)
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.appoint((2, 1, 12), (3, 1, 12), (5, 1, 12))
    assert world.appoint((3, 1, 12), (4, 1, 9), (5, 1, 9))
    known = world.partition
    assert known.appointment == Appointment(BrokerId(4), Epoch(1), Index(9))
    assert 4 in known.pending and 5 not in known.pending


def test_a_promotion_that_may_be_in_force_counts_for_an_appointment() -> None:
    """Granted and not reported: both what was before and what it leads to."""
    world = Shrinking(4)
    assert world.request(1, 2, observers=(3, 4))
    assert world.report(1, 2)
    assert world.request(1, 2, 4, observers=(3,))
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.appoint((4, 1, 9))
    assert not world.appoint((1, 1, 9))
    assert world.appoint((1, 1, 9), (4, 1, 9))


def test_an_appointment_in_the_middle_of_a_move_ends_none() -> None:
    world = Shrinking()
    world.commit((ReassignmentSet(GROUP, brokers(1, 5, 6), observers=brokers(4)),))
    assert world.request(1, 5, 6, observers=(4,))
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((2, 1, 9), (3, 1, 9), (5, 1, 9), (6, 1, 9))
    assert world.report(5, 6, 2, 3, grant=1)
    known = world.partition
    assert (known.replicas, known.target, known.acting) == ((1, 2, 3), (1, 5, 6), (5, 6, 2, 3))
    world.commit((ReassignmentSet(GROUP, ()),))
    assert {2, 3, 5, 6} <= set(world.partition.hosts)


def test_another_grant_takes_the_place_of_one_that_cannot_begin_and_both_may_be_in_force() -> None:
    world = Shrinking(4, 5)
    assert world.request(1, 2, 4, observers=(3, 5))
    assert not world.request(1, 2, 5, observers=(3, 4))
    assert world.request(1, 2, 5, observers=(3, 4), superseded=1)
    assert world.partition.possible == ((1, 2, 3), (1, 2, 4), (1, 2, 5))
    assert world.partition.pending == (1, 2, 5)
    assert not world.report(1, 2, 4)
    assert world.report(1, 2, 5)
    assert (world.partition.possible, world.partition.version) == (((1, 2, 5),), 2)


def test_a_grant_that_cannot_begin_is_withdrawn_by_a_grant_of_the_voters_as_they_are() -> None:
    world = Shrinking(4)
    assert world.request(1, 2, 4, observers=(3,))
    assert world.request(1, 2, 3, observers=(4,), superseded=1)
    assert world.report(1, 2, 3)
    assert (world.partition.possible, world.partition.version) == (((1, 2, 3),), 2)


def test_what_rests_on_an_earlier_grant_or_epoch_takes_no_place() -> None:
    """The second of two requests that were under way at once, and a leader that was fenced off."""
    world = Shrinking(4, 5)
    assert world.request(1, 2, 4, observers=(3, 5))
    assert world.request(1, 2, 3, observers=(4, 5), superseded=1)
    assert not world.request(1, 2, 5, observers=(3, 4), superseded=1)
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.request(1, 2, 5, observers=(3, 4), superseded=2)
    assert not world.request(1, 2, 5, observers=(3, 4), superseded=2, grant=1)


def test_no_appointment_is_superseded_before_its_leader_has_reported() -> None:
    """It is told again until then, as it was granted."""
    world = Shrinking(4)
    assert world.does(BeginGrant(GROUP, 0))
    assert world.appoint((1, 1, 9), (2, 1, 9))
    assert world.partition.pending == (1, 2)
    last = world.partition.last_version
    assert not world.request(1, 2, 3, observers=(4,), superseded=last, grant=1)
    assert world.report(1, 2, grant=1)
    assert world.request(1, 2, 3, observers=(4,), grant=1)


def test_an_appointment_takes_enough_of_what_was_superseded_too() -> None:
    """1 and 4 may have acknowledged without 2 and 3: 4 is asked, or nobody is appointed."""
    world = Shrinking(4)
    assert world.request(1, 4, observers=(2, 3))
    assert world.request(1, 2, 3, observers=(4,), superseded=1)
    assert world.does(BeginGrant(GROUP, 0))
    assert not world.appoint((2, 1, 9), (3, 1, 9))
    assert world.appoint((2, 1, 9), (3, 1, 9), (4, 1, 9))


def test_so_many_grants_wait_at_most() -> None:
    world = Shrinking(4)
    asked: tuple[tuple[int, ...], tuple[int, ...]] = (1, 2, 4), (3,)
    other: tuple[tuple[int, ...], tuple[int, ...]] = (1, 2, 3), (4,)
    taken = []
    for _ in range(SUPERSEDED_COUNT_MAX + 2):
        last = world.partition.last_version
        taken.append(world.request(*asked[0], observers=asked[1], superseded=last))
        asked, other = other, asked
    assert taken == [True] * (SUPERSEDED_COUNT_MAX + 1) + [False]
    assert world.report(*world.partition.pending)


def test_appointments_of_another_release_are_read() -> None:
    """Their tags on the wire and in the log are those of each release."""
    command = AppointLeader(group=GROUP, grant=1, ends=())
    assert msgspec.msgpack.decode(encode(command))["type"] == "SeatLeader"
    assert decode_command(encode(command)) == command
    record = decode_record(
        b'{"kind":"group_seated","group":1,"grant":1,"version":2,"voters":[1],"observers":[],'
        b'"leader":1,"last_epoch":1,"last_index":9}'
    )
    assert isinstance(record, LeaderAppointed) and record.leader == 1
