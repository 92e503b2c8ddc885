"""Drills: what is counted as lost, what would stop, what counts as steady, and what is said.

Source: docs/decisions/0019-drills.md."""

import json
from dataclasses import replace

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import OperatorError
from strandline.cli.drill import region
from strandline.cli.drill.forecast import TopicForecast, forecast
from strandline.cli.drill.forecast import course as foretold
from strandline.cli.drill.groups import OFFSETS_TOPIC, GroupWaits, choose_groups, offsets_leaders
from strandline.cli.drill.load import Waits
from strandline.cli.drill.region import Outcome, PartitionWaits, RegionDrill
from strandline.cli.drill.steady import Was, missing
from strandline.cli.drill.verdict import NO_OFFSET, Place, Verdict, compare
from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
from strandline.client.admin import GroupListing
from strandline.client.cluster import Client
from strandline.client.operations.leadership import LeaderWaiting
from strandline.client.operations.replica_status import PartitionStatus
from strandline.client.operations.topology import PlacedBroker, Topology
from strandline.coordinator.partitioning import partition_for
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.document import Policy, Promotion
from strandline.placement.solver.request import Request
from strandline.placement.survival.course import Course
from strandline.placement.survival.restarts import QuorumGroup
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_status import (
    PartitionReplicaStatus,
    ReplicaStatus,
)
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

# ---- what is counted as lost ---------------------------------------------------------------------

THERE = {0: {0: b"a", 1: b"b"}, 1: {0: b"c"}}
ALL = [Place(0, 0, b"a"), Place(0, 1, b"b"), Place(1, 0, b"c")]


def test_nothing_is_lost_where_all_that_was_promised_is_there() -> None:
    verdict = compare(ALL, ALL[:2], THERE)
    assert verdict.holds
    assert (verdict.acknowledged_count, verdict.consumed_count, verdict.found_count) == (3, 2, 3)


@pytest.mark.parametrize(
    ("partition", "there"),
    [
        (0, {0: b"a"}),  # The end is gone.
        (0, {1: b"b"}),  # The beginning is.
        (0, {0: b"b", 1: b"a"}),  # Others are at their offsets.
        (0, {}),
        (1, {}),
        (1, {1: b"c"}),  # It is there, and not where it was acknowledged.
    ],
)
def test_a_planted_loss_is_reported(partition: int, there: dict[int, bytes]) -> None:
    found = {**THERE, partition: there}
    lost = {one for one in ALL if found[one.partition].get(one.offset) != one.value}
    verdict = compare(ALL, [], found)
    assert lost and set(verdict.lost) == lost
    assert not verdict.holds and verdict.retracted == ()
    # A consumer that was given it has seen what is no more.
    assert set(compare([], ALL, found).retracted) == lost
    assert not compare([], ALL, found).holds


def test_a_partition_that_is_gone_as_a_whole_is_lost() -> None:
    assert len(compare(ALL, [], {0: THERE[0]}).lost) == 1


def test_an_acknowledgement_without_an_offset_is_looked_for_in_the_whole_partition() -> None:
    assert compare([Place(0, NO_OFFSET, b"b")], [], THERE).holds
    assert not compare([Place(1, NO_OFFSET, b"b")], [], THERE).holds


def test_duplicates_are_counted_and_lose_nothing() -> None:
    verdict = compare(ALL, [], {**THERE, 1: {0: b"c", 1: b"c", 2: b"c"}})
    assert (verdict.holds, verdict.duplicate_count) == (True, 2)


def test_waits_that_were_over_before_the_cut_do_not_count() -> None:
    waits = Waits([(100, 90), (1_500, 1_400), (1_520, 20), (1_540, 20)])
    assert (waits.longest_ms(1_000), waits.p50_ms(1_000)) == (1_400, 20)
    assert (waits.longest_ms(1_510), waits.longest_ms(2_000), waits.p50_ms(2_000)) == (20, 0, 0)


# ---- what would stop -----------------------------------------------------------------------------


def topic(
    name: str,
    min_insync: int,
    *partitions: PartitionState,
    shrinks: bool = False,
    promotion: Promotion = "",
) -> LiveTopic:
    request = Request(
        policy=Policy(distinct_host=False, promotion=promotion),
        min_insync_replicas=min_insync,
        default_voters=len(partitions[0].voters),
    )
    return LiveTopic(name, "", request, partitions, {}, shrinks)


def state(
    *voters: int,
    leader: int = 0,
    behind: tuple[int, ...] = (),
    observers: tuple[int, ...] = (),
    acting: tuple[int, ...] = (),
) -> PartitionState:
    return PartitionState(
        index=0,
        voters=tuple(map(BrokerId, voters)),
        leader=BrokerId(leader or voters[0]),
        behind=tuple(map(BrokerId, behind)),
        observers=tuple(map(BrokerId, observers)),
        acting=tuple(map(BrokerId, acting)),
    )


def live(*topics: LiveTopic, down: int = 0) -> LiveCluster:
    return LiveCluster(
        cluster_id="c",
        controller=BrokerId(1),
        candidates=tuple(
            Candidate(
                id=BrokerId(one),
                labels=Labels(),
                state=BrokerState.DOWN if one == down else BrokerState.ACTIVE,
                replicas=0,
                leaders=0,
            )
            for one in range(1, 6)
        ),
        round_trips=RoundTrips.measured({}, {}),
        led={},
        topics=topics,
    )


def test_writes_stop_where_no_write_quorum_is_left() -> None:
    gone = [BrokerId(1), BrokerId(2)]
    topics = (
        topic("spread", 2, state(1, 3, 5)),
        topic("near", 2, state(1, 2, 3)),
        topic("alone", 1, state(2)),
        topic("far", 1, state(3)),
        topic("both", 2, state(1, 3, 5), state(1, 2, 5)),
        topic("behind", 2, state(3, 1, 5, behind=(5,))),
    )
    assert forecast(live(*topics), gone) == [
        TopicForecast("alone", 1, led=1, stopped=1, exposed=1),
        TopicForecast("behind", 1, led=0, stopped=1, exposed=0),
        TopicForecast("both", 2, led=2, stopped=1, exposed=1),
        TopicForecast("far", 1, led=0, stopped=0, exposed=0),
        TopicForecast("near", 1, led=1, stopped=1, exposed=1),
        TopicForecast("spread", 1, led=1, stopped=0, exposed=0),
    ]
    (spread,) = forecast(live(topics[0], down=5), gone)
    assert spread.stopped == 1


HALF = state(1, 2, 3, 4)
ONE_OF_TWO = state(1, 3)
WITH_OBSERVER = state(1, 3, observers=(5,))


@pytest.mark.parametrize(
    ("partition", "min_insync", "shrinks", "promotion", "course"),
    [
        (HALF, 2, False, "", Course.LET_LEAVE),
        (HALF, 2, True, "", Course.ARBITRATION),
        (HALF, 3, True, "", Course.LOWER),
        (ONE_OF_TWO, 1, True, "", Course.ARBITRATION),
        (ONE_OF_TWO, 2, True, "", Course.LOWER),
        # One that has left before is no voter any more: of the two that are left, half.
        (state(1, 3, 5, behind=(5,)), 1, False, "", Course.MAY_LACK),
        (state(1, 3, 5, behind=(5,)), 1, True, "", Course.ARBITRATION),
        # acks=all asks for as many as ever, though a single one votes.
        (state(3, 4, 5, behind=(4, 5)), 2, True, "", Course.LOWER),
        (WITH_OBSERVER, 2, True, "under-min-isr", Course.STANDS_IN),
        (WITH_OBSERVER, 2, True, "under-replicated", Course.STANDS_IN),
        # Not sure to happen, or not at all.
        (WITH_OBSERVER, 2, True, "region-lost", Course.LOWER),
        (WITH_OBSERVER, 2, True, "", Course.LOWER),
        (WITH_OBSERVER, 2, False, "under-min-isr", Course.LET_LEAVE),
        # It stands in already, and is lost, too.
        (state(3, 2, observers=(1,), acting=(1, 3)), 1, True, "under-min-isr", Course.ARBITRATION),
        (state(3, 2, observers=(1,), acting=(1, 3)), 2, True, "under-min-isr", Course.LOWER),
        # The observer is lost with the voters.
        (state(1, 3, observers=(2,)), 2, True, "under-min-isr", Course.LOWER),
        # Nobody knows what was acknowledged: no observer helps.
        (state(1, 2, 3, observers=(5,)), 2, True, "under-min-isr", Course.MAY_LACK),
    ],
)
def test_it_is_foretold_what_goes_on_with_fewer_voters_or_with_observers(
    partition: PartitionState,
    min_insync: int,
    shrinks: bool,
    promotion: Promotion,
    course: Course,
) -> None:
    one = topic("t", min_insync, partition, shrinks=shrinks, promotion=promotion)
    gone = [BrokerId(1), BrokerId(2)]
    (told,) = forecast(live(one), gone)
    assert (told.stopped, told.voters_leave, told.stand_ins) == (
        int(not course.acts_alone),
        int(course is Course.ARBITRATION),
        int(course is Course.STANDS_IN),
    )
    assert foretold(one, partition, gone, (), decides=True) is course
    # Without the controller nobody is appointed, and nobody promoted.
    (told,) = forecast(live(one), gone, decides=False)
    assert (told.stopped, told.voters_leave, told.stand_ins) == (1, 0, 0)


def test_who_does_not_vote_any_more_is_missed_by_nobody() -> None:
    one = topic("t", 1, state(1, 2, observers=(3,), acting=(3,)), shrinks=True)
    (told,) = forecast(live(one), [BrokerId(1), BrokerId(2)], decides=False)
    assert (told.led, told.stopped, told.exposed) == (1, 0, 0)


def test_an_observer_that_is_down_stands_in_for_nobody() -> None:
    one = topic("t", 2, WITH_OBSERVER, shrinks=True, promotion="under-min-isr")
    (told,) = forecast(live(one, down=5), [BrokerId(1)])
    assert (told.stopped, told.stand_ins) == (1, 0)


def test_of_cached_writes_nobody_is_appointed_whom_only_a_promise_would_appoint() -> None:
    partition = state(1, 2, 3, observers=(4, 5))
    one = topic("t", 3, partition, shrinks=True, promotion="under-min-isr")
    (told,) = forecast(live(one), [BrokerId(1), BrokerId(2)])
    assert (told.stopped, told.stand_ins) == (0, 1)
    (told,) = forecast(live(replace(one, caches=True)), [BrokerId(1), BrokerId(2)])
    assert (told.stopped, told.stand_ins) == (1, 0)


# ---- what counts as steady -----------------------------------------------------------------------


def status(leader: int, *in_sync: int, answers: bool = True) -> PartitionStatus:
    replicas = [ReplicaStatus(broker_id=one, is_in_isr=one in in_sync) for one in (1, 2, 3)]
    answer = PartitionReplicaStatus(0, replicas=replicas) if answers else None
    return PartitionStatus("t", 0, BrokerId(leader), False, answer)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (status(1, 1, 2), []),
        (status(1, 1, 2, 3), []),
        (status(1, 1), ["t-0: not in sync: broker 2"]),
        (status(1, answers=False), ["t-0: no leader answers"]),
    ],
)
def test_steady_is_as_it_was_before(found: PartitionStatus, lines: list[str]) -> None:
    before = {("t", 0): Was(BrokerId(1), frozenset({1, 2}))}
    assert missing(before, [found], lambda _: pytest.fail("nobody need be asked")) == lines
    assert missing({}, [found], lambda _: None) == []


def waits_for(code: str) -> list[LeaderWaiting]:
    two = BrokerId(2)
    return [
        LeaderWaiting("t", 1, two, BrokerId(1), "delay", "of another partition"),
        LeaderWaiting("t", 0, two, BrokerId(1), code, "300 s are left"),
    ]


@pytest.mark.parametrize(
    ("waits", "is_steady"),
    [
        (waits_for("")[:1], True),  # It is led by the preferred one, and was not before.
        (waits_for("off"), True),
        (waits_for("writers"), True),
        (waits_for("maintenance"), True),
        (waits_for("delay"), False),
        (waits_for("behind"), False),
        (None, False),  # It does not say.
    ],
)
def test_who_led_or_should_lead_is_a_leader_that_is_back_and_anybody_where_none_goes_back(
    waits: list[LeaderWaiting] | None, is_steady: bool
) -> None:
    before = {("t", 0): Was(BrokerId(1), frozenset({1, 2}))}
    why = ": 300 s are left" if waits else ""
    lines = [] if is_steady else [f"t-0: led by broker 2 instead of 1{why}"]
    assert missing(before, [status(2, 1, 2)], lambda _: waits) == lines


# ---- the command ---------------------------------------------------------------------------------

OUTCOME = Outcome(
    topic="strandline-drill-x",
    brokers=(BrokerId(2),),
    waits=(PartitionWaits(0, BrokerId(2), 1_100, 20, 1_200, 21),),
    verdict=Verdict(100, 99, 100, (), (), 0),
    given_up_count=0,
    steady_after_ms=2_500,
    unsteady=(),
    groups=(GroupWaits("g", BrokerId(2), True, 1_300, 60, 1),),
)
LOST = replace(OUTCOME.verdict, lost=(Place(0, 7, b"0-7"),))


@pytest.fixture
def drilled(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """What drills come to, from now on; all else is as on a cluster that allows them."""
    outcomes = [OUTCOME]
    names = ("east", "west")
    brokers = tuple(
        PlacedBroker(BrokerId(one), Labels(region=name), True)
        for one, name in enumerate(names, start=1)
    )
    monkeypatch.setattr(region, "describe_topology", lambda _: Topology(brokers, {}))
    monkeypatch.setattr(region, "check_allowed", lambda *_: None)
    monkeypatch.setattr(
        "strandline.cli.text.live_cluster.look",
        lambda *_, **__: live(topic("t", 2, state(1, 2, 3)), topic("u", 1, state(2))),
    )
    everybody = frozenset(map(BrokerId, (1, 2, 3)))
    group = QuorumGroup(name="c", voters=everybody, quorum=2, ready=everybody)
    monkeypatch.setattr("strandline.cli.drill.forecast.controller_group", lambda *_: group)
    monkeypatch.setattr(
        "strandline.cli.drill.groups.list_groups",
        lambda *_: [GroupListing(name, "Stable", "consumer", BrokerId(2)) for name in ("g", "h")],
    )
    monkeypatch.setattr(RegionDrill, "run", lambda _: outcomes[0])
    return outcomes


def test_nothing_is_done_before_somebody_says_yes(
    run: Run, drilled: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RegionDrill, "run", lambda _: pytest.fail("it was done"))
    code, out, _ = run("drill", "region", "--name", "west")
    assert code == 0 and out.splitlines()[-1] == "nothing done; add --yes to run the drill"
    assert [line.split() for line in out.splitlines() if line.startswith("u ")] == [
        ["u", "1", "1", "1"]
    ]
    code, out, err = run("drill", "region", "--name", "west", "--yes")
    assert code == 1
    assert err == (
        "error: without west, topic u would refuse writes or may lose some; to run it all "
        "the same, add --force\n"
    )
    code, out, _ = run("drill", "region", "--name", "west", "--json")
    told = json.loads(out)
    assert (code, told["done"], told["controller_goes_on"]) == (0, False, True)


def test_what_goes_on_with_observers_needs_no_force(
    run: Run, drilled: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = topic("t", 2, state(2, 3, observers=(5,)), shrinks=True, promotion="under-min-isr")
    other = topic("u", 1, state(2, 3), state(3, 2), shrinks=True)
    monkeypatch.setattr("strandline.cli.text.live_cluster.look", lambda *_, **__: live(one, other))
    code, out, _ = run("drill", "region", "--name", "west", "--yes")
    assert code == 0
    assert "  partitions that continue after voters have left: u (2)" in out.splitlines()
    assert "  partitions that continue after observers stand in: t (1)" in out.splitlines()
    assert "  every topic continues; no acknowledged write is at risk" in out.splitlines()
    code, out, _ = run("drill", "region", "--name", "west", "--json")
    told = [(one["voters_leave"], one["observers_stand_in"]) for one in json.loads(out)["topics"]]
    assert (code, told) == (0, [(0, 1), (2, 0)])


def test_groups_whose_offsets_can_be_committed_nowhere_are_told(
    run: Run, drilled: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = topic(OFFSETS_TOPIC, 2, state(1, 2, 3), state(2, 3))
    monkeypatch.setattr("strandline.cli.text.live_cluster.look", lambda *_, **__: live(offsets))
    stopped = [partition_for(one, partition_count=2) for one in ("g", "h")].count(1)
    assert stopped == 1
    code, out, _ = run("drill", "region", "--name", "west")
    line = "  consumer groups coordinated there: 2; 1 of them cannot commit until it "
    assert code == 0 and line + "returns" in out.splitlines()
    code, out, _ = run("drill", "region", "--name", "west", "--json")
    told = json.loads(out)
    assert (told["groups_coordinated_there"], told["groups_without_coordinator"]) == (2, 1)


def test_each_broker_that_goes_and_coordinates_gets_one_group() -> None:
    leaders = {index: BrokerId(1 + index % 3) for index in range(10)}
    found = choose_groups("drill", leaders, [BrokerId(2), BrokerId(3), BrokerId(4)])
    assert sorted(found.values()) == [2, 3]
    for group, coordinator in found.items():
        assert leaders[partition_for(group, partition_count=10)] == coordinator
    assert choose_groups("drill", leaders, [BrokerId(4)]) == {}


def test_a_drill_makes_no_topic_that_it_could_not_take_away(
    cluster: FakeCluster,
) -> None:
    """The first question for a coordinator would make `__consumer_offsets`."""
    client = Client(cluster.bootstrap, timeout_ms=5_000, transport=FakeTransport(cluster))
    assert offsets_leaders(client) == {}
    assert choose_groups("drill", {}, [BrokerId(2)]) == {}
    assert {api for _, api in cluster.asked} <= {"ApiVersions", "Metadata"}
    cluster.add_topic(OFFSETS_TOPIC, 3)
    assert offsets_leaders(client) == {0: 1, 1: 2, 2: 3}


def test_what_groups_waited_is_told_beside_what_was_expected(
    run: Run, drilled: list[Outcome]
) -> None:
    waits = replace(OUTCOME.groups[0], group="h", goes_on=False, longest_ms=5_000)
    drilled[0] = replace(OUTCOME, groups=(OUTCOME.groups[0], waits))
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force")
    rows = [line.split() for line in out.splitlines() if line[:2] in ("g ", "h ")]
    assert code == 0 and rows == [
        ["g", "2", "goes", "on", "elsewhere", "1300", "60", "1"],
        ["h", "2", "waits", "until", "it", "is", "back", "5000", "60", "1"],
    ]
    drilled[0] = replace(OUTCOME, groups=())
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force")
    assert code == 0 and "no group was measured" in out
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force", "--json")
    assert json.loads(out)["group_rto_ms"] is None


def test_a_controller_that_would_lose_its_quorum_is_told(
    run: Run, drilled: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = frozenset(map(BrokerId, (1, 2)))
    group = QuorumGroup(name="c", voters=two, quorum=2, ready=two)
    monkeypatch.setattr("strandline.cli.drill.forecast.controller_group", lambda *_: group)
    code, out, err = run("drill", "region", "--name", "west", "--yes")
    assert code == 1 and "  the controller has no quorum: " in out
    assert err.startswith("error: without west, the controller and 1 more would refuse writes")
    code, out, _ = run("drill", "region", "--name", "west", "--json")
    assert not json.loads(out)["controller_goes_on"]


def test_who_is_cut_off_already_when_another_one_refuses_comes_back_by_itself(
    cluster: FakeCluster,
) -> None:
    asked: list[int] = []

    def isolate(_: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, IsolateBrokerRequest)
        asked.append(broker)
        return IsolateBrokerResponse(error_code=Error.POLICY_VIOLATION if broker == 3 else 0)

    cluster.extra = {"IsolateBroker": isolate}
    client = Client(cluster.bootstrap, transport=FakeTransport(cluster))
    known = client.metadata().brokers
    settings = region.Settings("west", 5_000, partitions=1, steady_ms_max=1_000)
    brokers = [BrokerId(2), BrokerId(3), BrokerId(1)]
    drill = RegionDrill(client, lambda _: client, settings, brokers, tell=lambda _: None)
    with pytest.raises(OperatorError) as refused:
        drill._cut(known)
    assert asked == [2, 3]
    assert "POLICY_VIOLATION" in str(refused.value)
    assert str(refused.value).endswith("broker 2 reconnects by itself within 6 s")


def test_what_came_of_it_is_told(run: Run, drilled: list[Outcome]) -> None:
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force")
    assert code == 0
    assert out.splitlines()[-2:] == [
        "RPO: 0 of 100 acknowledged records lost; 0 of 99 consumed ones retracted; 0 duplicates; "
        "0 given up",
        "RTO: producers waited at most 1100 ms, consumers 1200 ms, groups 1300 ms",
    ]
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force", "--json")
    told = json.loads(out)
    assert (code, told["rpo_records"], told["producer_rto_ms"]) == (0, 0, 1_100)
    assert told["led_there"] == 1


def test_a_region_that_leads_nothing_is_told_before_and_afterwards(
    run: Run, drilled: list[Outcome]
) -> None:
    drilled[0] = replace(OUTCOME, waits=(replace(OUTCOME.waits[0], leader=BrokerId(1)),))
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force")
    last = "warning: the region led none of the drill's partitions, so the figures do not show how "
    assert code == 0 and out.splitlines()[-1].startswith(last)
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force", "--json")
    assert (code, json.loads(out)["led_there"]) == (0, 0)
    told: list[str] = []
    for leader, count in ((1, 1), (2, 1)):
        found = {0: BrokerId(leader)}
        region.warn_of(found, "west", [BrokerId(2)], told.append)
        assert len(told) == count
    assert told[0].startswith("warning: west leads no partition of the drill's topic, so ")


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (replace(OUTCOME, verdict=LOST), "lost: partition 0, offset 7: 0-7"),
        (
            replace(OUTCOME, verdict=replace(OUTCOME.verdict, retracted=LOST.lost)),
            "retracted: partition 0, offset 7: 0-7",
        ),
        (replace(OUTCOME, unsteady=("t-0: no leader answers",)), "  t-0: no leader answers"),
    ],
)
def test_what_is_missing_fails_the_command(
    run: Run, drilled: list[Outcome], outcome: Outcome, line: str
) -> None:
    drilled[0] = outcome
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force")
    assert code == 1 and line in out.splitlines()
    code, out, _ = run("drill", "region", "--name", "west", "--yes", "--force", "--json")
    assert code == 1
    assert json.loads(out)["rpo_records"] == len(outcome.verdict.lost)


@pytest.mark.parametrize(
    ("living", "dead", "name", "why"),
    [
        ("east west", "", "north", "no region north; known regions: east, west"),
        ("west", "east", "west", "no broker outside west is up: the cluster would be down"),
        ("east", "west", "west", "broker 2 of west is down already"),
    ],
)
def test_regions_that_cannot_be_cut_off(
    monkeypatch: pytest.MonkeyPatch, living: str, dead: str, name: str, why: str
) -> None:
    regions = sorted([*living.split(), *dead.split()])
    brokers = tuple(
        PlacedBroker(BrokerId(index), Labels(region=one), one in living.split())
        for index, one in enumerate(regions, start=1)
    )
    monkeypatch.setattr(region, "describe_topology", lambda _: Topology(brokers, {}))
    with pytest.raises(OperatorError) as refused:
        region.brokers_of(object(), name)  # type: ignore[arg-type]
    assert str(refused.value) == why
