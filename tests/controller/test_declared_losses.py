"""When a person's word lets a group go on, and who is appointed then (decisions 0026 and 0027)."""

from dataclasses import replace

import pytest
from tests.controller.controller_world import registration
from tests.controller.test_grants import GROUP, Shrinking, brokers

from strandline.controller.arbitration.survivors import SurvivingLog, assess
from strandline.controller.commands import BeginGrant, Refused
from strandline.controller.loss_commands import DeclareLost, LossDeclared, ShownLog
from strandline.controller.records import ConfigsChanged, GrantBegun
from strandline.controller.reports import LogReport, Report
from strandline.model.cluster import Loss
from strandline.model.ids import GRANT_MAX, BrokerId, first_epoch

HEARD = (1, 4, 5, 6)


class Lost(Shrinking):
    """Voters 2 and 3 are silent; voter 1 and observer 4 are left, and 5 and 6, which have none."""

    def __init__(self, *observers: int) -> None:
        super().__init__(*observers)
        self.alive = set(brokers(*HEARD))
        self.logs: dict[int, LogReport] = {}
        self.log_of(1, end=10, committed=6)
        self.log_of(4, end=8, committed=5)

    def log_of(
        self, broker: int, *, end: int, committed: int, last_epoch: int = 1, **more: int
    ) -> None:
        self.logs[broker] = LogReport(
            is_led=bool(more.get("is_led")),
            epoch=more.get("epoch", last_epoch),
            last_epoch=last_epoch,
            last_index=end,
            start=0,
            committed=committed,
            end=end,
            has_lost=bool(more.get("has_lost")),
            leader=BrokerId(more.get("leader", -1)),
        )

    def declare(self, *lost: int, grant: int = 0, by: str = "a person") -> Loss | str:
        """What was taken down, or why nothing was."""
        for one in self.alive:
            hears = self.reports[one].hears if one in self.reports else None
            logs = {GROUP: self.logs[one]} if one in self.logs else {}
            self.reports[one] = Report(0, 1, hears=hears or tuple(self.alive), logs=logs)
        asked = DeclareLost(
            group=GROUP, grant=grant, brokers=brokers(*lost), by=by, at_ms=7, validate_only=True
        )
        found = self.run(asked)
        if isinstance(found, Refused):
            return found.message
        assert isinstance(found, LossDeclared) and self.partition.grant == grant
        done = self.run(replace_shown(asked, found.logs))
        assert isinstance(done, LossDeclared), done
        return done.loss


def replace_shown(asked: DeclareLost, shown: tuple[ShownLog, ...]) -> DeclareLost:
    return DeclareLost(
        group=asked.group,
        grant=asked.grant,
        brokers=asked.brokers,
        shown=shown,
        by=asked.by,
        at_ms=asked.at_ms,
    )


def test_who_is_left_is_fenced_and_nothing_before_may_be_in_force() -> None:
    world = Lost()
    assert world.request(1, 2, observers=(3, 4))
    loss = world.declare(2, 3)
    assert isinstance(loss, Loss)
    assert (loss.survivors, loss.leader, loss.committed, loss.end) == ((1, 4), 1, 6, 10)
    assert [one.directory_id for one in loss.lost] == ["directory-2", "directory-3"]
    known = world.partition
    assert known.possible == ((1, 4),) and known.is_fenced and known.is_declared
    assert (known.grant, known.version, known.replicas) == (1, 1, (1, 2, 3))
    assert known.losses == (loss,) and (loss.by, loss.at_ms) == ("a person", 7)
    assert known.hosts == (1, 2, 3, 4)
    assert [known.lost_in(BrokerId(one)) for one in (1, 2, 3, 4)] == [0, 1, 1, 0]
    assert world.state.has_lost(BrokerId(2), GROUP) and not world.state.has_lost(BrokerId(1), GROUP)
    assert world.replayed().cluster == world.state.cluster


def test_the_survivor_is_appointed_alone_and_the_lost_are_no_members() -> None:
    world = Lost()
    world.declare(2, 3)
    assert world.appoint((1, 1, 10), (4, 1, 8))
    known = world.partition
    assert known.appointment is not None and known.appointment.leader == 1
    assert (known.pending, known.pending_observers) == ((1,), (4,))
    assert world.report(1, grant=1)
    assert (world.partition.voters, world.partition.is_declared) == ((1,), False)
    assert world.replayed().cluster == world.state.cluster


def test_nobody_is_appointed_whose_log_ends_elsewhere_by_then() -> None:
    world = Lost()
    world.declare(2, 3)
    assert not world.appoint((1, 1, 9), (4, 1, 8))
    assert not world.appoint((1, 1, 11), (4, 1, 8))
    assert not world.appoint((1, 1, 10), (4, 1, 9))
    assert not world.appoint((2, 1, 30), (3, 1, 30))
    # Looked at again, it is.
    world.log_of(1, end=9, committed=0)
    loss = world.declare(2, 3, grant=1)
    # Observer 4 knows more to be committed, which broker 1 has.
    assert isinstance(loss, Loss) and (loss.grant, loss.committed, loss.end) == (2, 5, 9)
    assert world.appoint((1, 1, 9), (4, 1, 8), grant=2)


def test_who_was_given_up_votes_only_after_it_has_started_anew() -> None:
    world = Lost()
    world.declare(2, 3)
    assert world.appoint((1, 1, 10), (4, 1, 8))
    assert world.report(1, grant=1)
    assert not world.request(1, 2, observers=(3, 4), grant=1)
    assert world.state.cluster.given_up(world.partition) == {2, 3}
    world.run(registration(2, incarnation="second"))
    assert world.state.cluster.given_up(world.partition) == {3}
    assert world.request(1, 2, observers=(3, 4), grant=1)


def test_after_a_declaration_no_survivor_may_be_missing_until_all_is_stable() -> None:
    world = Shrinking()
    lost = Lost.__new__(Lost)
    lost.__dict__.update(world.__dict__)
    lost.reports, lost.logs = {}, {}
    lost.alive = set(brokers(1, 2, 4, 5, 6))
    grown = replace(lost.partition, replicas=brokers(1, 2, 3, 5, 6))
    lost.state._put(grown)
    lost.alive = set(brokers(1, 2, 4))
    lost.log_of(1, end=10, committed=6)
    lost.log_of(2, end=12, committed=7)
    lost.log_of(4, end=8, committed=5)
    loss = lost.declare(3, 5, 6)
    assert isinstance(loss, Loss) and (loss.survivors, loss.leader) == ((1, 2, 4), 2)
    # One of two would hold all that these have acknowledged, and not what was before.
    assert not lost.appoint((1, 1, 10))
    # Who has more by now was elected meanwhile, perhaps.
    assert not lost.appoint((1, 2, 11), (2, 1, 12), (4, 1, 8))
    assert lost.appoint((1, 1, 10), (2, 1, 12), (4, 1, 8))
    assert lost.does(BeginGrant(GROUP, 1))
    assert not lost.appoint((1, 1, 10), grant=2)
    assert lost.appoint((1, 1, 10), (2, 1, 12), (4, 1, 8), grant=2)


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        ((), "name those of them"),
        ((2, 9), "name those of them"),
        ((2, 3, 4), "broker 4 reaches the controller"),
        ((2,), "broker 3 is unreachable"),
    ],
)
def test_only_who_is_gone_can_be_given_up(lost: tuple[int, ...], why: str) -> None:
    world = Lost()
    told = world.declare(*lost)
    assert isinstance(told, str) and why in told
    assert world.partition.grant == 0


def test_who_is_heard_and_has_no_log_to_show_has_to_be_stopped_before() -> None:
    world = Lost()
    world.alive.add(BrokerId(2))
    told = world.declare(3)
    assert isinstance(told, str) and "broker 2 is up" in told and "stop the broker" in told


def test_it_is_refused_while_anybody_hears_the_lost() -> None:
    world = Lost()
    world.reports[BrokerId(5)] = Report(0, 1, hears=brokers(1, 3, 5))
    told = world.declare(2, 3)
    assert isinstance(told, str) and "broker 3 reaches broker 5" in told


def test_it_is_refused_where_nothing_need_be_lost() -> None:
    world = Lost()
    world.log_of(1, end=10, committed=6, is_led=1)
    assert "it has a leader" in str(world.declare(2, 3))
    world.log_of(1, end=10, committed=6)
    world.alive.add(BrokerId(2))
    world.log_of(2, end=10, committed=6)
    assert "a majority" in str(world.declare(3))
    world.log_of(1, end=10, committed=6, has_lost=1)
    world.log_of(2, end=10, committed=6, has_lost=1)
    world.log_of(4, end=8, committed=5, has_lost=1)
    assert "no usable log is left" in str(world.declare(3))


def test_whoever_is_left_and_holds_everything_is_appointed_and_the_refusal_says_by_what() -> None:
    world = Lost()
    rest = (BrokerId(3), BrokerId(4))
    assert world.request(1, 2, observers=rest) and world.report(1, 2)
    world.log_of(1, end=10, committed=6)
    told = str(world.declare(2, 3))
    appointed = "the controller then appoints one of them, in seconds"
    assert "the replicas left hold every acknowledged record" in told
    assert told.endswith(f"set voters.shrink.enable=true: {appointed}")
    world.commit((ConfigsChanged("topic", "t", {"voters.shrink.enable": "true"}),))
    told = str(world.declare(2, 3))
    assert told.endswith(
        "acknowledged record: wait: the controller appoints one of them, in seconds"
    )


class Cut(Lost):
    """Voters 1 and 2 are left, and do not hear each other; observer 4 hears both, and only 3 is
    silent. `voting`: the voters that were reported last, where they are fewer than placed."""

    def __init__(self, *voting: int) -> None:
        super().__init__()
        if voting:
            rest = tuple(one for one in (1, 2, 3, 4) if one not in voting)
            assert self.request(*voting, observers=rest) and self.report(*voting)
        self.alive.add(BrokerId(2))
        self.log_of(2, end=10, committed=6)
        self.cut((1,), (2,))

    def shrinks(self) -> None:
        """Voters of the topic may leave."""
        self.commit((ConfigsChanged("topic", "t", {"voters.shrink.enable": "true"}),))

    def cut(self, *sides: tuple[int, ...]) -> None:
        """These are heard by all but those of the other ones."""
        for side in sides:
            deaf = {one for other in sides if other != side for one in other}
            for one in side:
                hears = tuple(other for other in self.alive if other not in deaf)
                self.reports[BrokerId(one)] = Report(0, 1, hears=hears)


LINK = "broker 1 and broker 2 do not reach each other"


def test_voters_that_do_not_hear_each_other_need_a_mended_link_or_the_controller() -> None:
    world = Cut(1, 2)
    told = str(world.declare(3))
    assert f"a majority of its voters answers, so nothing need be lost, but {LINK}" in told
    assert "repair the link" in told and "`zone status`" in told
    assert "or set voters.shrink.enable=true: the controller then appoints one side" in told
    world.shrinks()
    told = str(world.declare(3))
    assert LINK in told and told.endswith("or wait: the controller appoints one side, in seconds")


def test_it_is_said_where_no_side_is_known_to_hold_everything() -> None:
    """One of three voters may have acknowledged what only the other one that is left holds, too."""
    world = Cut()
    world.shrinks()
    told = str(world.declare(3))
    assert LINK in told and "repair the link" in told
    assert told.endswith(
        "until then no leader is appointed: no side is certain to hold every record"
    )


def test_it_is_said_for_whom_the_controller_waits_while_a_side_is_chosen() -> None:
    world = Cut(1, 2)
    world.shrinks()
    assert world.does(BeginGrant(GROUP, 0)) and world.appoint((1, 1, 10), (4, 1, 8))
    told = str(world.declare(3, grant=1))
    assert LINK in told
    assert told.endswith("or wait: the controller has appointed broker 1, and waits until it leads")


def test_all_sides_are_told_of_where_there_are_more_than_two() -> None:
    world = Cut()
    world.alive.add(BrokerId(3))
    world.log_of(3, end=10, committed=6)
    world.logs.pop(4)
    world.alive.remove(BrokerId(4))
    world.cut((1,), (2,), (3,))
    told = str(world.declare(4))
    assert "but none of them reach each other: repair" in told
    chain = Lost(4, 5)
    assert chain.request(1, 2, 3, 4, observers=(5,)) and chain.report(1, 2, 3, 4)
    assert chain.request(1, 2, 3, 4, 5, observers=()) and chain.report(1, 2, 3, 4, 5)
    chain.alive = set(brokers(1, 2, 3, 4, 6))
    for one in (1, 2, 3, 4):
        chain.log_of(one, end=10, committed=6)
        near = {one - 1, one, one + 1, 6} - {0, 5}
        chain.reports[BrokerId(one)] = Report(0, 1, hears=brokers(*near))
    told = str(chain.declare(5))
    assert "but only these reach each other: brokers 1, 2; 2, 3; 3, 4: repair" in told


def test_who_names_nobody_where_a_majority_answers_reads_what_helps() -> None:
    world = Cut()
    world.alive.add(BrokerId(3))
    world.log_of(3, end=10, committed=6)
    world.cut((1,), (2,), (3,))
    assert "but none of them reach each other: repair" in str(world.declare())
    world.log_of(3, end=10, committed=6, is_led=1, leader=3)
    assert str(world.declare()).endswith(
        "it has a leader, or had one a moment ago: nothing is lost"
    )
    assert world.partition.grant == 0


def test_voters_that_hear_each_other_elect_a_leader() -> None:
    world = Cut()
    world.reports.clear()
    told = str(world.declare(3))
    assert "a majority of its voters is left, and elects a leader" in told and "`zone" in told


def test_nobody_has_to_be_named_where_the_others_are_back_with_empty_disks() -> None:
    world = Lost()
    world.alive.update(brokers(2, 3))
    for one in (2, 3):
        world.log_of(one, end=0, committed=0, last_epoch=0)
    world.log_of(4, end=8, committed=5)
    assert "a majority of its voters is left" in str(world.declare())
    for one in (2, 3):
        world.log_of(one, end=0, committed=0, last_epoch=0, has_lost=1)
    loss = world.declare()
    assert isinstance(loss, Loss)
    assert (loss.lost, loss.survivors, loss.leader, loss.end) == ((), (1, 4), 1, 10)
    assert world.appoint((1, 1, 10), (4, 1, 8))
    assert world.report(1, grant=1)
    # They are members as they are: nothing of theirs has to be forgotten.
    assert not world.state.cluster.given_up(world.partition)
    # But an older data directory of theirs is trusted no more.
    assert [world.state.rejoined(one, GROUP) > 0 for one in brokers(1, 2, 3, 4)] == [
        False,
        True,
        True,
        False,
    ]
    assert world.request(1, 2, observers=(3, 4), grant=1)
    assert world.replayed().cluster == world.state.cluster


def test_it_is_declared_again_where_who_was_given_up_is_back_before_anybody_is_appointed() -> None:
    world = Lost()
    world.declare(2, 3)
    world.alive.update(brokers(2, 3))
    for one in (2, 3):
        world.run(registration(one, incarnation="second"))
        world.log_of(one, end=0, committed=0, last_epoch=0, has_lost=1)
    world.log_of(1, end=9, committed=0)  # It lost what was not flushed.
    assert not world.appoint((1, 1, 9), (4, 1, 8))
    loss = world.declare(grant=1)
    assert isinstance(loss, Loss) and (loss.grant, loss.lost, loss.end) == (2, (), 9)
    assert world.appoint((1, 1, 9), (4, 1, 8), grant=2)


def test_who_leads_and_may_not_serve_stands_against_nothing() -> None:
    """It hears too few who could vote, and whoever is back with an empty disk hears it."""
    world = Lost()
    world.log_of(1, end=10, committed=6, leader=1)
    world.log_of(4, end=8, committed=5, is_led=1, leader=1)
    assert isinstance(world.declare(2, 3), Loss)
    other = Lost()
    other.log_of(4, end=8, committed=5, is_led=1, leader=2)
    assert "it has a leader" in str(other.declare(2, 3))


def test_it_is_refused_where_who_has_lost_its_log_before_has_more() -> None:
    """It cannot be appointed: what it had told others before that it does not know."""
    world = Lost()
    world.log_of(4, end=11, committed=5, has_lost=1)
    assert "broker 4, which may not lead because it lost" in str(world.declare(2, 3))
    # It ends earlier, and has heard of something committed that broker 1 lacks, perhaps.
    world.log_of(1, end=10, committed=6, last_epoch=2)
    world.log_of(4, end=9, committed=9, last_epoch=1, epoch=3, has_lost=1)
    assert "broker 4, which may not lead because it lost" in str(world.declare(2, 3))
    world.log_of(4, end=4, committed=4, has_lost=1)
    assert isinstance(world.declare(2, 3), Loss)


def test_an_observer_that_has_more_is_appointed_and_votes() -> None:
    """It is one of those that are left, and no more is at risk than what it lacks."""
    world = Lost()
    world.log_of(4, end=80, committed=7)
    loss = world.declare(2, 3)
    assert isinstance(loss, Loss)
    assert (loss.survivors, loss.leader, loss.committed, loss.end) == ((1, 4), 4, 7, 80)
    assert world.partition.possible == ((1, 4),) and world.partition.is_declared
    # It is fenced as voters are, and so are they: nobody is appointed without either.
    assert not world.appoint((1, 1, 10))
    assert not world.appoint((4, 1, 80))
    assert world.appoint((1, 1, 10), (4, 1, 80))
    known = world.partition
    assert known.appointment is not None and known.appointment.leader == 4
    assert (known.pending, known.pending_observers) == ((4,), (1,))  # Broker 1 is far behind.
    assert world.report(4, grant=1)
    known = world.partition
    assert (known.voters, known.replicas, known.observers) == ((4,), (1, 2, 3), (4,))
    assert not known.is_declared
    assert world.replayed().cluster == world.state.cluster
    # And goes, once others vote.
    assert world.request(4, 1, observers=(2, 3), grant=1)
    assert world.report(4, 1, grant=1)
    assert world.request(1, observers=(2, 3, 4), grant=1)


def test_a_voter_that_is_near_votes_beside_the_observer_that_is_appointed() -> None:
    world = Lost()
    world.log_of(4, end=11, committed=6)
    assert isinstance(world.declare(2, 3), Loss)
    assert world.appoint((1, 1, 10), (4, 1, 11))
    assert set(world.partition.pending) == {1, 4}


def test_of_logs_that_are_as_good_a_voter_s_goes_on() -> None:
    world = Lost()
    world.log_of(4, end=10, committed=6)
    loss = world.declare(2, 3)
    assert isinstance(loss, Loss) and (loss.survivors, loss.leader) == ((1, 4), 1)
    # The observer is fenced, lest it hear late, from who was given up, what broker 1 lacks; and
    # it does not vote.
    assert not world.appoint((1, 1, 10))
    assert not world.appoint((1, 1, 10), (4, 1, 11))
    assert world.appoint((1, 1, 10), (4, 1, 10))
    assert (world.partition.pending, world.partition.pending_observers) == ((1,), (4,))


def test_what_an_observer_knows_to_be_committed_is_on_the_log_that_goes_on() -> None:
    """Broker 4 ends before broker 1 does, in an earlier epoch, and has heard in a later one that
    all of its log is committed: broker 1 may have something else there."""
    world = Lost()
    world.log_of(1, end=10, committed=6, last_epoch=2)
    world.log_of(4, end=9, committed=9, last_epoch=1, epoch=3)
    loss = world.declare(2, 3)
    assert isinstance(loss, Loss)
    assert (loss.leader, loss.committed, loss.end) == (4, 9, 9)
    assert world.appoint((1, 2, 10), (4, 1, 9))
    # An end in a later epoch is no nearness: broker 1 has to be brought in step first.
    assert world.partition.pending == (4,)


def test_where_no_voter_is_left_an_observer_goes_on_alone() -> None:
    world = Lost()
    world.alive.discard(BrokerId(1))
    del world.logs[1]
    assert "broker 1 is unreachable" in str(world.declare(2, 3))
    loss = world.declare(1, 2, 3)
    assert isinstance(loss, Loss)
    assert (loss.survivors, loss.leader, loss.committed, loss.end) == ((4,), 4, 5, 8)
    assert world.partition.possible == ((4,),)
    assert world.appoint((4, 1, 8))
    known = world.partition
    assert (known.pending, known.pending_observers) == ((4,), ())
    assert world.report(4, grant=1)
    # Those that were given up are voters again one by one, as they come back.
    assert not world.request(4, 1, observers=(2, 3), grant=1)
    world.run(registration(1, incarnation="second"))
    assert world.request(4, 1, observers=(2, 3), grant=1)
    assert world.replayed().cluster == world.state.cluster


def test_where_all_voters_are_back_with_empty_disks_an_observer_goes_on() -> None:
    world = Lost()
    world.alive.update(brokers(2, 3))
    for one in (1, 2, 3):
        world.log_of(one, end=0, committed=0, last_epoch=0, has_lost=1)
    loss = world.declare()
    assert isinstance(loss, Loss)
    assert (loss.lost, loss.survivors, loss.leader) == ((), (4,), 4)
    assert world.appoint((4, 1, 8))
    assert set(world.partition.pending_observers) == {1, 2, 3}


def test_an_observer_that_is_being_promoted_is_a_voter_that_is_left() -> None:
    """Whether it was begun nobody can tell."""
    world = Lost()
    assert world.request(1, 2, 3, 4, observers=())
    loss = world.declare(2, 3)
    # Half of four hold everything; not so one of three.
    assert isinstance(loss, Loss) and (loss.survivors, loss.leader) == ((1, 4), 1)
    # The promotion is struck: the leader of an earlier epoch asks for it in vain.
    assert world.partition.possible == ((1, 4),)
    assert not world.request(1, 2, 3, 4, observers=())
    assert not world.appoint((1, 1, 10))
    assert world.appoint((1, 1, 10), (4, 1, 8))
    # What it was granted is nothing now; the policy may have it promoted again.
    assert (world.partition.pending, world.partition.pending_observers) == ((1,), (4,))


def test_the_observer_that_was_appointed_is_waited_for_until_its_voters_are_stable() -> None:
    world = Lost()
    world.log_of(4, end=11, committed=6)
    assert isinstance(world.declare(2, 3), Loss)
    assert world.appoint((1, 1, 10), (4, 1, 11))
    assert world.does(BeginGrant(GROUP, 1))
    # Broker 1 alone may lack what broker 4 had, and was not given up.
    assert not world.appoint((1, 1, 10), grant=2)
    assert not world.appoint((1, 1, 11), grant=2)
    first = first_epoch(1)
    assert world.appoint((1, first, 12), (4, first, 13), grant=2)
    known = world.partition
    assert known.appointment is not None and known.appointment.leader == 4


def test_the_observer_that_was_appointed_is_given_up_as_others_are() -> None:
    world = Lost()
    world.log_of(4, end=11, committed=6)
    assert isinstance(world.declare(2, 3), Loss)
    assert world.appoint((1, 1, 10), (4, 1, 11))
    world.alive.discard(BrokerId(4))
    world.reports.clear()
    loss = world.declare(2, 3, 4, grant=1)
    assert isinstance(loss, Loss)
    assert (loss.survivors, loss.leader, loss.committed, loss.end) == ((1,), 1, 6, 10)
    assert world.state.cluster.given_up(world.partition) == {2, 3, 4}
    assert world.appoint((1, 1, 10), grant=2)
    assert world.partition.pending_observers == ()


def test_other_observers_are_fenced_and_stay_observers() -> None:
    world = Lost()
    world.state._put(replace(world.partition, observers=brokers(4, 5)))
    world.log_of(4, end=11, committed=6)
    world.log_of(5, end=10, committed=5)
    loss = world.declare(2, 3)
    assert isinstance(loss, Loss) and (loss.survivors, loss.leader) == ((1, 4, 5), 4)
    assert not world.appoint((1, 1, 10), (4, 1, 11))
    assert world.appoint((1, 1, 10), (4, 1, 11), (5, 1, 10))
    assert set(world.partition.pending) == {1, 4}
    assert world.partition.pending_observers == (5,)
    # Of logs that are as good in the next grant, one of the partition's own voters leads.
    assert world.does(BeginGrant(GROUP, 1))
    first = first_epoch(1)
    assert not world.appoint((1, first, 13), (4, first, 13), grant=2)
    assert world.appoint((1, first, 13), (4, first, 13), (5, first, 13), grant=2)
    known = world.partition
    assert known.appointment is not None and known.appointment.leader == 1
    assert set(known.pending) == {1, 4}


def test_it_is_refused_where_the_logs_are_others_than_those_shown() -> None:
    world = Lost()
    world.declare(5)  # Nothing; it fills the reports.
    asked = DeclareLost(group=GROUP, grant=0, brokers=brokers(2, 3), validate_only=True)
    found = world.run(asked)
    assert isinstance(found, LossDeclared)
    world.log_of(1, end=10, committed=9)
    world.declare(5)
    done = world.run(replace_shown(asked, found.logs))
    assert isinstance(done, Refused) and "show them again" in done.message
    assert world.partition.grant == 0


def test_the_last_grant_that_an_epoch_can_name_is_not_passed() -> None:
    world = Lost()
    world.commit(tuple(GrantBegun(GROUP, one) for one in range(1, GRANT_MAX + 1)))
    assert "make the topic anew" in str(world.declare(2, 3, grant=GRANT_MAX))


def test_a_command_that_is_repeated_changes_nothing() -> None:
    world = Lost()
    first = world.declare(2, 3)
    again = world.run(DeclareLost(group=GROUP, grant=0, brokers=brokers(2, 3)))
    assert isinstance(again, LossDeclared) and again.loss == first
    assert len(world.partition.losses) == 1
    refused = world.run(DeclareLost(group=GROUP, grant=0, brokers=brokers(2)))
    assert isinstance(refused, Refused) and "its grant is 1, not 0" in refused.message


def test_a_log_that_lacks_what_a_later_leader_committed_is_not_the_best() -> None:
    """Broker 1 heard in epoch 3 that an entry of epoch 1 is committed. Broker 2 led epoch 2, and
    has something else in its place."""
    knowing = SurvivingLog(
        broker=BrokerId(1),
        is_led=False,
        last_epoch=1,
        last_index=5,
        start=0,
        committed=5,
        end=5,
        epoch=3,
    )
    other = replace(knowing, broker=BrokerId(2), last_epoch=2, committed=4, epoch=3)
    found = assess([brokers(1, 2, 3, 4, 5)], [knowing, other])
    assert (found.best, found.committed, found.end) == (1, 5, 5)
    met = replace(other, last_epoch=3)
    assert assess([brokers(1, 2, 3, 4, 5)], [knowing, met]).best == 2
    assert first_epoch(1) > 3
