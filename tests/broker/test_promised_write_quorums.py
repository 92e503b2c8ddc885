"""A write quorum of more than a majority: promised, relied on, withdrawn. Source: decision 0041."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from msgspec import UNSET
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_cuts_between_voters import cut, heal, ways
from tests.broker.voters_world import HOME, append, votes

from strandline.broker.groups import promised_write_quorums, voter_reconciliation
from strandline.broker.groups.promised_write_quorums import REFUSED_MS
from strandline.broker.groups.voter_reconciliation import RETURN_MS
from strandline.controller.decide import voters as decide
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId, first_epoch
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import PromisedQuorum, promised_quorum_of
from strandline.replication.liveness import sessions
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import ABILITIES, Ability
from strandline.simulation.network.link import Link
from strandline.simulation.world.scheduler import US_PER_MS

CONFIGS = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Three voters, of which all have to commit what is acknowledged, and have promised it."""
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as made:
        made.until(lambda: has_promised(made, 3))
        yield made


def has_promised(world: MovingWorld, floor: int) -> bool:
    """Whether the leader keeps to it, and the controller knows; and nothing is under way."""
    known = world.known
    return (known.floor, known.pending) == (floor, ()) and world.any_leader(
        lambda one: promised_quorum_of(one.configuration.floor) == floor
    )


def test_one_of_three_goes_on_where_all_had_to_have_what_is_acknowledged(
    world: MovingWorld,
) -> None:
    """A follower, which knows of what was acknowledged last only that it may be."""
    last = next(one for one in HOME if one != world.leader_of(TOPIC))
    for one in HOME:
        if one != last:
            world.hosts[one].kill()
    world.until(lambda: votes(world, last))
    assert world.leader_of(TOPIC) == last
    assert world.known.grant == 1
    world.check()
    (answer,) = append(world, b"alone", acks=-1)
    assert answer.error_code == Error.NOT_ENOUGH_REPLICAS
    written = append(world, b"alone", acks=1)
    world.until(lambda: bool(written))
    assert written[0].error_code == Error.NONE
    for one in HOME:
        if one != last:
            world.hosts[one].start()
    world.until(lambda: votes(world, *HOME))
    world.finish(*HOME)
    world.until(lambda: has_promised(world, 3))


def test_where_one_is_lost_the_promise_is_withdrawn_and_two_serve(world: MovingWorld) -> None:
    leader = world.leader_of(TOPIC)
    first, second = (one for one in HOME if one != leader)
    world.hosts[first].kill()
    world.until(lambda: has_promised(world, 0))
    world.until(lambda: can_serve(world, leader))
    world.until(lambda: votes(world, leader, second))
    written = append(world, b"two", acks=1)
    world.until(lambda: bool(written))
    assert written[0].error_code == Error.NONE
    assert world.known.grant == 0
    world.hosts[first].start()
    world.until(lambda: votes(world, *HOME))
    world.finish(*HOME)
    world.until(lambda: has_promised(world, 3))


def test_a_leader_that_can_commit_nothing_withdraws_what_the_last_one_promised(
    world: MovingWorld,
) -> None:
    leader = world.leader_of(TOPIC)
    left = [one for one in HOME if one != leader]
    world.hosts[leader].kill()
    world.until(lambda: votes(world, *left))
    assert world.known.grant == 0
    assert world.known.floor == 0
    world.check()


def test_a_promise_that_cannot_be_committed_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A voter hangs, whose acknowledgement of the promise is waited for."""
    slow = ("replica.lag.time.max.ms", "5000")
    with moving_world(monkeypatch, HOME, configs=(*CONFIGS, slow)) as world:
        world.until(lambda: bool(world.known.pending))
        hung = next(one for one in HOME if one != world.leader_of(TOPIC))
        # What is flushed from now on is not reported: the promise is not in the log yet.
        assert not world.any_leader(lambda one: promised_quorum_of(one.configuration.floor) == 3)
        world.replicas_of(TOPIC)[hung].flushes.is_under_way = True
        world.until(
            lambda: world.any_leader(lambda one: promised_quorum_of(one.configuration.floor) == 3)
        )
        assert world.known.pending
        world.until(lambda: votes(world, *(one for one in HOME if one != hung)))
        assert (world.known.floor, world.known.grant) == (0, 0)


@pytest.mark.parametrize("apart_ms", [100, 400])
def test_two_that_are_lost_one_shortly_after_the_other_are_lost_at_once(
    world: MovingWorld, apart_ms: int
) -> None:
    """The promise is what the third one needs: it is not withdrawn when the first one is missed."""
    leader = world.leader_of(TOPIC)
    for one in HOME:
        if one != leader:
            world.hosts[one].kill()
            world.advance(apart_ms)
    world.until(lambda: votes(world, leader))
    world.check()


@pytest.mark.parametrize("other_ms", [0, 200])
def test_reads_go_on_where_one_voter_answers_too_late_for_a_lease(
    world: MovingWorld, other_ms: int
) -> None:
    """And nothing is promised again meanwhile; also where the other one is far, too, and answers a
    heartbeat when half of its lease is over."""
    leader = world.leader_of(TOPIC)
    late, other = (one for one in HOME if one != leader)
    delay(world, leader, {late: 450, other: other_ms})
    world.until(lambda: has_promised(world, 0))
    refused_count = 0
    for _ in range(200):
        world.advance(100)
        refused_count += not can_serve(world, leader)
    assert (refused_count, world.known.floor, world.known.grant) == (0, 0, 0)
    world.finish(*HOME)


def test_a_link_that_flaps_has_the_promise_wait_longer_and_longer(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long all went well before."""
    monkeypatch.setattr(voter_reconciliation, "RETURN_MS", RETURN_MS // 20)
    monkeypatch.setattr(promised_write_quorums, "RETURN_MS", RETURN_MS // 4)
    world.advance(60_000)
    leader = world.leader_of(TOPIC)
    link = ways((leader,), (next(one for one in HOME if one != leader),))
    versions = []
    for _ in range(16):
        cut(world, link)
        world.advance(1_300)
        heal(world, link)
        world.advance(8_000)
        versions.append(world.known.version)
    assert versions[-1] - versions[0] <= 10
    assert versions[-1] == versions[-4]


def test_what_only_the_leader_is_asked_to_have_is_seen_once_it_is_flushed(
    world: MovingWorld,
) -> None:
    """One that has lost its power may be all that is left, and lead."""
    leader = world.leader_of(TOPIC)
    slow = next(one for one in HOME if one != leader)
    world.until(lambda: not world.replicas_of(TOPIC)[slow].flushes.is_under_way)
    world.replicas_of(TOPIC)[slow].flushes.is_under_way = True
    answers = append(world, b"relaxed", acks=1)
    world.until(lambda: bool(answers))
    world.advance(1_000)
    assert world.replicas_of(TOPIC)[slow].log.end_offset > answers[0].base_offset
    assert world.replicas_of(TOPIC)[leader].high_watermark <= answers[0].base_offset


def test_what_the_controller_refuses_is_not_asked_for_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller of an earlier release knows of no floor."""
    may_be = decide._may_be
    refused: list[PromisedQuorum] = []

    def earlier(partition: Partition, asked: Roles, floor: PromisedQuorum) -> bool:
        found = may_be(partition, asked, UNSET)
        if not found:
            refused.append(floor)
        return found

    monkeypatch.setattr(decide, "_may_be", earlier)
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as world:
        world.until(lambda: bool(refused))
        world.advance(REFUSED_MS // 2)
        assert refused == [3]


def test_a_majority_that_may_be_superseded_appends_nothing_for_long(world: MovingWorld) -> None:
    """It cannot withdraw what it promised: the third one may have been appointed."""
    leader = world.leader_of(TOPIC)
    last = next(one for one in HOME if one != leader)
    cut(world, ways([one for one in HOME if one != last], (1, 2, last)))
    replica = world.replicas_of(TOPIC)[leader]
    world.until(lambda: not replica.can_serve_reads)
    answers = append(world, b"at once", acks=1, at=leader)
    world.until(lambda: bool(answers))
    assert answers[0].error_code == Error.NONE
    world.advance(3_000)
    assert replica.is_leader
    (answer,) = append(world, b"later", acks=1, at=leader)
    assert answer.error_code == Error.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(
    "change",
    [
        ("min.insync.replicas", "2"),
        ("voters.shrink.enable", "false"),
        ("write.caching", "true"),
    ],
    ids=str,
)
def test_a_promise_that_is_not_wanted_any_more_is_withdrawn(
    world: MovingWorld, change: tuple[str, str]
) -> None:
    alter(world, TOPIC_SCOPE, TOPIC, *change)
    world.until(lambda: has_promised(world, 0))
    world.advance(10_000)
    assert has_promised(world, 0)
    world.finish(*HOME)
    least = 2 if change[1] == "2" else 3
    assert world.any_leader(lambda one: one.configuration.min_insync == least)


def test_who_may_have_been_superseded_answers_no_reads(world: MovingWorld) -> None:
    """Two of three that hear each other, and not the controller, would elect a leader: the third
    one is appointed, and acknowledges what they lack."""
    last = next(one for one in HOME if one != world.leader_of(TOPIC))
    others = [one for one in HOME if one != last]
    stale: list[str] = []
    links = ways(others, (1, 2, last))
    cut(world, links)

    def leads_alone() -> bool:
        replicas = world.replicas_of(TOPIC)
        serving = [one for one in others if serves(replicas[one])]
        if replicas[last].epoch >= first_epoch(1) and serves(replicas[last]) and serving:
            stale.append(f"{serving} serve beside {last}")
        return replicas[last].is_leader and serves(replicas[last])

    world.until(leads_alone)
    written = append(world, b"alone", acks=1)
    world.until(lambda: bool(written))
    assert written[0].error_code == Error.NONE
    world.advance(3_000)
    leads_alone()
    assert stale == []
    heal(world, links)
    world.until(lambda: votes(world, *HOME))
    world.finish(*HOME)


def test_nothing_is_promised_with_voters_whose_release_does_not_keep_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "ABILITIES", ABILITIES & ~Ability.PROMISED_QUORUMS)
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        world.advance(12_000)
        assert (world.known.floor, world.known.version) == (0, 0)


def delay(world: MovingWorld, leader: int, one_way_ms: Mapping[int, int]) -> None:
    """Whatever the leader and these send each other takes so much longer from now on."""
    near = world.fabric.link
    links = {
        frozenset((leader, other)): replace(
            near(BrokerId(leader), BrokerId(other)), latency_us=500 + late_ms * US_PER_MS
        )
        for other, late_ms in one_way_ms.items()
    }

    def link(source: BrokerId, target: BrokerId) -> Link:
        return links.get(frozenset((source, target))) or near(source, target)

    world.fabric.link = link  # type: ignore[method-assign]
    for one, other in ways((leader,), one_way_ms):
        world.fabric.reset(BrokerId(one), BrokerId(other))


def serves(replica: Replica) -> bool:
    return replica.is_leader and replica.can_serve_reads


def can_serve(world: MovingWorld, broker: int) -> bool:
    return serves(world.replicas_of(TOPIC)[broker])
